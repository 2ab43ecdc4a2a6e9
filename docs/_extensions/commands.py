"""The reference of the command line, made from the commands themselves."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx


class Commands(Directive):
    """A section for each sub-command: usage, what it does, its arguments and options, and an example."""

    def run(self) -> list[nodes.Node]:
        """Return the sections."""
        from plumdp.cli import COMMANDS, load

        return [section_of(name, load(name)) for name in COMMANDS]


class Refusals(Directive):
    """The table of what does not go together, from ``REFUSALS``."""

    def run(self) -> list[nodes.Node]:
        """Return the table."""
        from plumdp.base.combinations import REFUSALS

        rows = [("this", "with", "is refused, as in")]
        for each in REFUSALS:
            one, *rest = (" or ".join(trait.value for trait in group) for group in each.groups)
            rows.append((one, ", and ".join(rest), "".join(map(str, each.parts("…")))))
        body = [nodes.row("", *(nodes.entry("", nodes.paragraph(text=text)) for text in row)) for row in rows]
        columns = [nodes.colspec(colwidth=width) for width in (1, 1, 2)]
        group = nodes.tgroup("", *columns, nodes.thead("", body[0]), nodes.tbody("", *body[1:]), cols=3)
        return [nodes.table("", group)]


def section_of(name: str, command: Any) -> nodes.section:
    """Return the section of one sub-command."""
    from plumdp.cli.help import option_words

    title = f"plumdp {name}"
    ctx = command.make_context(title, ["--help"], resilient_parsing=True)
    params = [param for param in command.get_params(ctx) if not getattr(param, "hidden", False)]
    arguments = [(param.metavar, param.help or "") for param in params if param.param_type_name == "argument"]
    options = [option_words(param, ctx) for param in params if param.param_type_name == "option"]
    usage = " ".join([title, "[OPTIONS]", *(str(written) for written, _ in arguments)])
    section = nodes.section(ids=[nodes.make_id(title)], names=[title])
    section += nodes.title(text=title)
    section += [nodes.paragraph(text=" ".join(part.split())) for part in (command.help or "").split("\n\n")]
    section += nodes.literal_block(usage, usage, language="text")
    section += definitions([*arguments, *options])
    section += nodes.literal_block(command.example, command.example, language="text")
    return section


def definitions(entries: list[tuple[str, str]]) -> nodes.definition_list:
    """Return names with what they mean."""
    listed = nodes.definition_list()
    for written, text in entries:
        meaning = nodes.definition("", nodes.paragraph(text=text))
        listed += nodes.definition_list_item("", nodes.term("", "", nodes.literal(text=written)), meaning)
    return listed


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directives."""
    app.add_directive("commands", Commands)
    app.add_directive("refusals", Refusals)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

"use strict";
addEventListener("beforeprint", () => {
  for (const folded of document.querySelectorAll("details")) folded.open = true;
});
for (const input of document.querySelectorAll("input[data-table]")) {
  const table = document.getElementById(input.dataset.table);
  const body = table.tBodies[0];
  const found = document.getElementById(table.id + "-found");
  const note = found.textContent;
  const rows = [...body.rows];
  const names = [...table.tHead.rows[0].cells].map((cell) => cell.textContent.toLowerCase());
  const matches = (row, word) => {
    const [name, value] = word.split("=");
    const column = names.indexOf(name);
    if (value !== undefined && column >= 0) {
      return row.cells[column].textContent.toLowerCase() === value;
    }
    return [...row.cells].some((cell) => cell.textContent.toLowerCase().includes(word));
  };
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().replace(/\s*=\s*/g, "=").split(/[\s,]+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      row.hidden = !words.every((word) => matches(row, word));
      shown += row.hidden ? 0 : 1;
    }
    found.textContent = words.length ? `${shown.toLocaleString("en")} of ${rows.length.toLocaleString("en")} rows` : note;
  });
  for (const [column, cell] of [...table.tHead.rows[0].cells].entries()) {
    cell.tabIndex = 0;
    const sort = () => {
      const up = cell.getAttribute("aria-sort") !== "ascending";
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      cell.setAttribute("aria-sort", up ? "ascending" : "descending");
      const compare = new Intl.Collator("en", { numeric: true }).compare;
      const value = (row) => row.cells[column].textContent;
      const order = [...body.rows].sort((a, b) => {
        const [x, y] = [value(a), value(b)];
        const difference = x - y;
        return (Number.isNaN(difference) ? compare(x, y) : difference) * (up ? 1 : -1);
      });
      body.append(...order);
    };
    cell.addEventListener("click", sort);
    cell.addEventListener("keydown", (event) => { if (event.key === "Enter") sort(); });
  }
}

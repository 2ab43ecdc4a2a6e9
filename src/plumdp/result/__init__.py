"""What we may claim: certificates, findings and policies as data, text, HTML, JSON and files.

In: bounds and what they rest on.
Out: ``Certificate``, ``Findings``, ``PolicyTable``, and folders of files.
Begin with: ``certificate.py``; ``show.py`` renders every result, ``folder.py`` writes it.
Used by: learning, certifying, verifying, exchange, explaining, online, starting, watching, plots, reporting, cli.
"""

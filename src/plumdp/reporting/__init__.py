"""Reports of certificates as one HTML file, in notebooks, and from saved results.

In: a result, or its folder.
Out: a page.
Begin with: ``page.py``; ``sections.py`` has what each section shows.
Used by: cli.
"""

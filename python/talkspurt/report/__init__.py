"""The report: one self-contained HTML file that needs neither network nor server.

``single`` builds the page of one run, ``study`` that of many; ``topology`` and ``calls`` build
its parts, the charts come from ``figures``; ``page`` assembles the parts, the style sheet and the
scripts of ``web/``.
"""

"""The report: one HTML file that needs nothing else, neither network nor server.

``single`` makes the page of one run, ``study`` that of many; ``topology``, ``series`` and ``calls``
make its parts; ``page`` puts the parts, the style sheet and the scripts of ``web/`` together.
"""

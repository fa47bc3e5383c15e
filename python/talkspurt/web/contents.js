// Marks the section being read in the table of contents, and unfolds what a link leads to.

const links = new Map();
for (const link of document.querySelectorAll(".contents a")) {
  const section = document.getElementById(link.hash.slice(1));
  if (section) links.set(section, link);
}

function mark() {
  // The last section that begins in the upper third; at the bottom of the page, the last one.
  const end = window.innerHeight + window.scrollY >= document.documentElement.scrollHeight - 2;
  const begun = [...links.keys()].filter((s) => s.getBoundingClientRect().top < window.innerHeight / 3);
  const current = links.get(end ? [...links.keys()].at(-1) : (begun.at(-1) ?? [...links.keys()][0]));
  for (const link of links.values()) {
    if (link === current && !link.hasAttribute("aria-current")) {
      link.setAttribute("aria-current", "true");
      const list = link.closest("ol");
      if (list.scrollWidth > list.clientWidth) list.scrollLeft = link.offsetLeft - list.clientWidth / 3;
    } else if (link !== current) link.removeAttribute("aria-current");
  }
}

if (links.size) {
  document.addEventListener("scroll", mark, { passive: true });
  mark();
}

function unfold() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const folded = target?.closest("details");
  if (!folded || folded.open) return;
  folded.open = true;
  target.scrollIntoView();
}

addEventListener("hashchange", unfold);
unfold();

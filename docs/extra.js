// What the theme leaves out for keyboards and screen readers: a name of the search, and a focus for
// blocks that scroll.
(() => {
  const scrolling = "pre > code, .md-typeset__scrollwrap, math[display=block], p:has(math), li:has(math)";
  const mend = () => {
    document.querySelector(".md-search")?.setAttribute("aria-label", "Search");
    for (const block of document.querySelectorAll(scrolling))
      if (block.scrollWidth > block.clientWidth) block.tabIndex = 0;
  };
  window.addEventListener("load", mend);
  window.addEventListener("resize", mend);
})();

// Returns what a finger or an eye stumbles over on the open page: targets that
// are too low, content that is wider than the screen, words that are cut in two.
(() => {
  const found = []
  const describe = e => `<${e.localName}> "${(e.innerText || e.value || e.name || "").trim().slice(0, 40)}"`

  const wide = document.scrollingElement.scrollWidth - document.documentElement.clientWidth
  if (wide > 0) {
    found.push(`the page is ${wide} px wider than the screen`)
  }

  for (const e of document.querySelectorAll("a[href], button, input, select, textarea, summary")) {
    // Neither seen nor reached.
    if (e.type === "hidden" || e.tabIndex < 0 || !e.checkVisibility()) {
      continue
    }
    // A box is pressed anywhere on its row.
    const target = e.closest("label") ?? e
    // A link inside a sentence is as high as its line allows (WCAG 2.5.8).
    const sentence = e.localName === "a" && getComputedStyle(e).display.startsWith("inline") &&
      e.parentElement.innerText.trim().length > e.innerText.trim().length + 1
    const least = sentence ? 24 : 44
    const height = target.getBoundingClientRect().height
    if (height < least - 0.5) {
      found.push(`${describe(e)} is ${height.toFixed(1)} px high, wanted ${least}`)
    }
  }
  // A word or a number that is cut in two reads as another one. Long ones,
  // addresses and scripts without spaces may break; so may anything on a screen
  // narrower than 320 px (WCAG 1.4.10).
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  for (let node = texts.nextNode(); node && innerWidth >= 320; node = texts.nextNode()) {
    if (!node.parentElement.checkVisibility()) {
      continue
    }
    for (const word of node.data.matchAll(/[\p{L}\p{N}’']+/gu)) {
      if (word[0].length > 14 || /\p{Script=Han}/u.test(word[0])) {
        continue
      }
      const range = document.createRange()
      range.setStart(node, word.index)
      range.setEnd(node, word.index + word[0].length)
      if (new Set(Array.from(range.getClientRects(), r => Math.round(r.top))).size > 1) {
        found.push(`“${word[0]}” is cut in two`)
      }
    }
  }
  return found
})()

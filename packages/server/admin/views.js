const DEFAULT = 'overview'

/** Shows the view that the address names after `#`. */
export function createViews() {
  const views = [...document.querySelectorAll('[data-view]')]
  const links = [...document.querySelectorAll('nav a')]

  function show() {
    const asked = location.hash.slice(1)
    const name = views.some(({ dataset }) => dataset.view === asked) ? asked : DEFAULT
    for (const view of views) view.hidden = view.dataset.view !== name
    for (const link of links) {
      if (link.hash === `#${name}`) link.setAttribute('aria-current', 'page')
      else link.removeAttribute('aria-current')
    }
  }

  addEventListener('hashchange', () => {
    show()
    scrollTo(0, 0)
  })
  show()
}

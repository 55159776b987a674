/** An element with text. Text is never parsed as HTML, whoever wrote it. */
export function element(tag, text, className = '') {
  const made = document.createElement(tag)
  made.className = className
  // Direction marks in it cannot reorder what stands beside it.
  made.dir = 'auto'
  made.textContent = text
  return made
}

/**
 * Fills a table: a head of names, and rows of texts or elements. On a phone each row is a list, which takes the roles of
 * a table from its elements.
 * @param empty What is said instead of no rows.
 */
export function fillTable(table, names, rows, empty) {
  const head = document.createElement('thead')
  head.append(
    rowOf(
      names.map((name) =>
        name === '' ? withRole('cell', element('td', '')) : withRole('columnheader', element('th', name)),
      ),
    ),
  )
  const body = document.createElement('tbody')
  body.append(...rows.map((cells) => rowOf(cells.map((content, index) => toCell(content, names[index])))))
  if (rows.length === 0) {
    const cell = withRole('cell', element('td', empty, 'none'))
    cell.colSpan = names.length
    body.append(rowOf([cell]))
  }
  table.replaceChildren(withRole('rowgroup', head), withRole('rowgroup', body))
  withRole('table', table)
}

function rowOf(cells) {
  const row = document.createElement('tr')
  row.append(...cells)
  return withRole('row', row)
}

function toCell(content, name) {
  const cell = content instanceof Node ? document.createElement('td') : element('td', String(content ?? ''))
  if (content instanceof Node) cell.append(content)
  cell.dataset.name = name
  return withRole('cell', cell)
}

function withRole(role, made) {
  made.setAttribute('role', role)
  return made
}

/** What a select offers: all, or one of the names. The chosen one stays chosen while it is there. */
export function offer(select, names) {
  const options = ['all', ...names]
  if (Array.from(select.options, ({ value }) => value).join() === options.join()) return
  const chosen = select.value
  select.replaceChildren(...options.map((name) => new Option(name)))
  if (options.includes(chosen)) select.value = chosen
}

/** A number for people. */
export function count(value) {
  return Math.round(value).toLocaleString('en')
}

/** Three digits of a number, with a letter for thousands. */
export const short = (value) => value.toLocaleString('en', { notation: 'compact', maximumSignificantDigits: 3 })

/** Time since a start, in its largest unit and the next one. */
export function age(ms) {
  const minutes = Math.floor(ms / 60_000)
  if (minutes < 1) return `${Math.floor(ms / 1_000)} s`
  if (minutes < 60) return `${minutes} min`
  const hours = Math.floor(minutes / 60)
  return hours < 24 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} d ${hours % 24} h`
}

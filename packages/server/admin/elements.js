/** An element with text. Text is never parsed as HTML, whoever wrote it. */
export function element(tag, text, className = '') {
  const made = document.createElement(tag)
  made.className = className
  // Direction marks in it cannot reorder what stands beside it.
  made.dir = 'auto'
  made.textContent = text
  return made
}

/** Fills a table: a head of names, and rows of texts or elements. */
export function fillTable(table, names, rows) {
  const head = document.createElement('tr')
  head.append(...names.map((name) => element(name === '' ? 'td' : 'th', name)))
  const body = rows.map((cells) => {
    const row = document.createElement('tr')
    row.append(...cells.map(toCell))
    return row
  })
  if (body.length === 0) {
    const row = document.createElement('tr')
    const cell = element('td', 'none', 'none')
    cell.colSpan = names.length
    row.append(cell)
    body.push(row)
  }
  table.replaceChildren(head, ...body)
}

function toCell(content) {
  if (!(content instanceof Node)) return element('td', String(content ?? ''))
  const cell = document.createElement('td')
  cell.append(content)
  return cell
}

/** A number for people. */
export function count(value) {
  return Math.round(value).toLocaleString('en')
}

/** A page that was read more days ago fails the test. */
const MAX_AGE_DAYS = 90

/** Days after which the test warns. */
const WARN_DAYS = 75

const DAY_MS = 86_400_000

/** What is wrong with the sources of a page, in sentences. */
export interface SourceReport {
  /** Foreign cells that were found, `product: row`. */
  readonly cells: readonly string[]
  /** What fails: cells without a source, sources without a cell, and those that are too old. */
  readonly defects: readonly string[]
  /** Sources that are about to be too old. */
  readonly warnings: readonly string[]
}

/**
 * Checks that each cell about another product, in tables with a column WebMQ, has a source, and when it was read. A
 * source is `[text][id]` with a definition `[id]: https://… "read 2026-11-29"`, or a link to a page of ours that
 * measured it.
 * @param page Name of the page, for the sentences.
 */
export function checkSources(page: string, markdown: string, today: Date): SourceReport {
  const defects: string[] = []
  const warnings: string[] = []
  const readers = new Map<string, string[]>()
  const cells = foreignCells(markdown)
  for (const { name, text } of cells) {
    const ids = [...text.matchAll(/\]\[([^\]]+)\]/g)].map(([, id = '']) => id)
    for (const id of ids) readers.set(id, [...(readers.get(id) ?? []), name])
    if (/\]\(https?:/.test(text)) defects.push(`${page}: ${name}: an address without a day, write [text][id]`)
    else if (ids.length === 0 && !text.includes('](')) defects.push(`${page}: ${name}: no source`)
  }
  const sources = definitions(markdown)
  for (const [id, names] of readers) {
    if (!sources.has(id)) defects.push(`${page}: [${id}] is not defined with a day, for ${names.join('; ')}`)
  }
  for (const [id, { url, readOn }] of sources) {
    const ageDays = Math.floor((today.getTime() - Date.parse(readOn)) / DAY_MS)
    const what = readers.get(id)?.join('; ') ?? 'the text'
    const sentence = `${page}: ${url} was read on ${readOn}, ${ageDays} days ago. Read it again for ${what}`
    if (!markdown.includes(`][${id}]`)) defects.push(`${page}: nothing refers to [${id}]`)
    // Also what is no date.
    else if (!(ageDays >= 0 && ageDays <= MAX_AGE_DAYS)) defects.push(sentence)
    else if (ageDays >= WARN_DAYS) warnings.push(sentence)
  }
  return { cells: cells.map(({ name }) => name), defects, warnings }
}

/** Cells of tables with a column WebMQ, but for that column and the first one. */
function foreignCells(markdown: string): { name: string; text: string }[] {
  const tables = markdown.match(/(?:^\|.*\n)+/gm) ?? []
  return tables.flatMap((table) => {
    const [products = [], , ...rows] = table.trimEnd().split('\n').map(cellsOf)
    const own = products.findIndex((product, column) => column > 0 && product.startsWith('WebMQ'))
    if (own === -1) return []
    return rows.flatMap(([row = '', ...others]) =>
      others.flatMap((text, index) => (index + 1 === own ? [] : { name: `${products[index + 1]}: ${row}`, text })),
    )
  })
}

function cellsOf(line: string): string[] {
  return line
    .slice(1, -1)
    .split('|')
    .map((cell) => cell.trim())
}

/** Definitions of links that say a day, by their id. */
function definitions(markdown: string): Map<string, { url: string; readOn: string }> {
  const found = markdown.matchAll(/^\[([^\]]+)\]: (\S+) "read ([^"]*)"$/gm)
  return new Map([...found].map(([, id = '', url = '', readOn = '']) => [id, { url, readOn }]))
}

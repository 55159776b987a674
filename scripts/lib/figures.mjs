import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { ROOT } from './steps.mjs'

/** The page whose tables are made from files. */
export const PAGE = path.join(ROOT, 'docs', 'benchmarks.md')
/** One file per table: `<name>.json`. */
export const FIGURES = path.join(ROOT, 'docs', 'benchmarks')

const DAY_MS = 86_400_000
/** For code that is not listed. */
const DEFAULT_DAYS = 60
/** For how many days a table stays true after the last change of the code that it measures. */
const MAY_BE_OLDER_DAYS = {
  'packages/native/crates': 21,
  'packages/server/src/transports': 21,
  'packages/server/src/session': 21,
  'packages/server/src/publishing': 21,
  'packages/server/src/routing': 21,
  'packages/server/src/brokers': 30,
}

/**
 * The figures of one table, as its file has them.
 * @typedef {object} Figures
 * @property {string} [command] what made them, run in packages/bench; absent when the page says it
 * @property {string} commit what was measured
 * @property {string} date of the oldest figure, as YYYY-MM-DD
 * @property {string[]} measures the code that they depend on
 * @property {string[]} [keys] of the columns in a result of the bench, for `--take`
 * @property {string[]} columns
 * @property {string[][]} rows
 */

/** All tables by name. @returns {Map<string, Figures>} */
export function readFigures(folder = FIGURES) {
  const files = readdirSync(folder).filter((file) => file.endsWith('.json'))
  return new Map(
    files.map((file) => [path.basename(file, '.json'), JSON.parse(readFileSync(path.join(folder, file), 'utf8'))]),
  )
}

/** The text of a file of figures: a row per line. @param {Figures} figures */
export function figuresText({ columns, rows, ...head }) {
  const members = Object.entries({ ...head, columns }).map(([key, value]) => `  "${key}": ${JSON.stringify(value)},\n`)
  return `{\n${members.join('')}  "rows": [\n${rows.map((row) => `    ${JSON.stringify(row)}`).join(',\n')}\n  ]\n}\n`
}

/**
 * The page with the tables of the figures between their marks.
 * @param {string} page
 * @param {Map<string, Figures>} tables
 * @throws {Error} for a mark without figures, figures without a mark, and a row without as many cells as columns
 */
export function withTables(page, tables) {
  const left = new Set(tables.keys())
  const result = page.replaceAll(/<!-- figures: (\S+) -->\n.*?<!-- \/figures -->/gs, (_, name) => {
    const figures = tables.get(name)
    if (figures === undefined) throw new Error(`docs/benchmarks has no ${name}.json`)
    left.delete(name)
    return `<!-- figures: ${name} -->\n\n${tableOf(name, figures)}\n\n<!-- /figures -->`
  })
  if (left.size > 0) throw new Error(`docs/benchmarks.md has no place for ${[...left].join(', ')}`)
  return result
}

function tableOf(name, { columns, rows }) {
  const crooked = rows.find((row) => row.length !== columns.length)
  if (crooked !== undefined) throw new Error(`${name}.json: not ${columns.length} cells: ${crooked.join(' | ')}`)
  const line = (cells) => `| ${cells.join(' | ')} |`
  return [columns, columns.map(() => '---'), ...rows].map(line).join('\n')
}

/**
 * Tables that are older than the code they measure allows.
 * @param {Map<string, Figures>} tables
 * @param {(path: string) => number} changedAtMs when code was last changed, Unix time in milliseconds
 * @returns {string[]} a sentence for each
 */
export function staleTables(tables, changedAtMs) {
  const sentences = []
  for (const [name, { date, measures }] of tables) {
    for (const code of measures) {
      const days = Math.floor((changedAtMs(code) - Date.parse(date)) / DAY_MS)
      const allowedDays = MAY_BE_OLDER_DAYS[code] ?? DEFAULT_DAYS
      if (days > allowedDays)
        sentences.push(
          `${name} was measured ${days} days before the last change of ${code}; ${allowedDays} are allowed`,
        )
    }
  }
  return sentences
}

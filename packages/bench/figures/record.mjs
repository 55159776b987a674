// The result of a measurement in the form of `benchmark.js --json`: medians of the repeats, with their ranges.
import { writeFileSync } from 'node:fs'
import process from 'node:process'
import { describeMachine } from '../dist/measure/machine.js'
import { column } from '../dist/results/columns.js'
import { combineRuns } from '../dist/trials/medians.js'

export { column }

/**
 * Prints the medians, and writes the record when there is a file.
 * @param {object} measured
 * @param {string} measured.scenario
 * @param {readonly object[]} measured.columns without that of the target
 * @param {readonly (readonly { target: string }[])[]} measured.repeats those of a row together
 * @param {string | undefined} measured.file
 */
export function report({ scenario, columns: own, repeats, file }) {
  const columns = [column('target', 'Target', 'text'), ...own]
  const rows = repeats.map((runs) =>
    combineRuns(
      runs.map((run) => ({ verdict: 'ok', verdictReason: null, ...run })),
      columns,
    ),
  )
  console.table(rows.map((row) => Object.fromEntries(columns.map(({ key, title }) => [title, cellOf(row, key)]))))
  const command = `node ${process.argv.slice(1).join(' ')}`
  const record = { scenario, command, machine: describeMachine(), identity: ['target'], columns, rows, versions: {} }
  if (file !== undefined) writeFileSync(file, JSON.stringify(record))
}

function cellOf(row, key) {
  return key.split('.').reduce((value, part) => value?.[part], row)
}

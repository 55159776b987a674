import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { RULES } from '../src/judging/judge.js'
import { PROMISES } from '../src/judging/promises.js'
import { DELIVER_WITHIN_MS } from '../src/judging/rules.js'
import { TARGET_RULES } from '../src/targets/target-rules.js'

const read = (file: string) => readFileSync(fileURLToPath(new URL(`../../../${file}`, import.meta.url)), 'utf8')
const page = read('docs/checker.md')

/** Rows that begin with a rule, of the table with `columns` columns. */
function rowsOf(columns: number): string[][] {
  const rows = page.split('\n').flatMap((line) => (/^\| `[\w-]+` \|/.test(line) ? [line.split(' | ')] : []))
  return rows
    .filter(({ length }) => length === columns)
    .map((row) => row.map((cell) => cell.replaceAll(/^\| | \|$/g, '')))
}

it('lists every rule of the judge, as the report does', () => {
  expect(Object.keys(PROMISES)).toEqual(Object.keys(RULES))
  const rows = Object.entries(PROMISES).map(([rule, { promise, unless, of }]) => [`\`${rule}\``, promise, unless, of])
  expect(rowsOf(4)).toEqual(rows)
})

it('lists every rule for other systems', () => {
  const rows = Object.entries(TARGET_RULES).map(([rule, { promise, unless }]) => [`\`${rule}\``, promise, unless])
  expect(rowsOf(3)).toEqual(rows)
})

it('has the times of the judge', () => {
  expect(page).toContain(`a delivery ${DELIVER_WITHIN_MS / 1_000} s`)
})

it('has the colours of the report of the bench', () => {
  const rootOf = (text: string) => text.match(/:root\{[^}]*\}/g)
  expect(rootOf(read('packages/check/src/report/page-style.ts'))).toEqual(rootOf(read('packages/bench/report.html')))
})

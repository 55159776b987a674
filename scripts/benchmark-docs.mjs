// `npm run docs:benchmarks`: writes the tables of docs/benchmarks.md from the figures in docs/benchmarks/*.json. Refuses
// figures that are older than the code they measure allows.
// Usage: node scripts/benchmark-docs.mjs [--check] [--take <name> <result.json>]
//   --check: only checks that the page is what the figures say
//   --take: first takes the rows of a result that `benchmark.js --json` wrote, with its commit and date
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import process from 'node:process'
import { FIGURES, figuresText, PAGE, readFigures, staleTables, withTables } from './lib/figures.mjs'
import { print, ROOT, runScript, StepError } from './lib/steps.mjs'

const [option, name, file] = process.argv.slice(2)

await runScript(async () => {
  if (option === '--take') await take()
  const tables = readFigures()
  const page = readFileSync(PAGE, 'utf8')
  const written = withTables(page, tables)
  if (option === '--check') {
    if (written !== page) throw new StepError('docs/benchmarks.md differs from its figures: npm run docs:benchmarks')
    return
  }
  const stale = staleTables(tables, changedAtMs)
  if (stale.length > 0) throw new StepError(`figures that are too old:\n  ${stale.join('\n  ')}`)
  writeFileSync(PAGE, written)
  print(`${tables.size} tables are in docs/benchmarks.md`)
})

/** When the newest commit that touched a path was made. */
function changedAtMs(code) {
  const seconds = execFileSync('git', ['log', '-1', '--format=%ct', '--', code], { cwd: ROOT, encoding: 'utf8' })
  if (seconds.trim() === '') throw new StepError(`no commit has touched ${code}: is it still called so?`)
  return Number(seconds) * 1_000
}

async function take() {
  const figures = readFigures().get(name ?? '')
  if (figures === undefined || file === undefined) throw new StepError('--take <name of a table> <result.json>')
  const dist = (part) => import(path.join(ROOT, 'packages', 'bench', 'dist', 'report', part))
  const [{ asRecord }, { formatCell }] = await Promise.all(['read-record.js', 'format-cell.js'].map(dist))
  const { columns, rows, machine, command } = asRecord(JSON.parse(readFileSync(file, 'utf8')), file)
  if (machine.isGitDirty !== false) throw new StepError(`${file} does not say which commit it measured: commit first`)
  const keys = figures.keys ?? columns.map(({ key }) => key)
  // All rows are taken: those of peers must say whose they are.
  if (new Set(rows.map(({ target }) => target)).size > 1 && !keys.includes('target'))
    throw new StepError(`${name} has rows of several targets, and no column 'target' in its keys`)
  const chosen = keys.map((key) => {
    const column = columns.find((one) => one.key === key)
    if (column === undefined) throw new StepError(`${file} has no column ${key}`)
    return column
  })
  const taken = {
    ...figures,
    command,
    commit: machine.gitCommit.slice(0, 8),
    date: machine.startedAt.slice(0, 10),
    columns: figures.keys === undefined ? chosen.map(({ title }) => title) : figures.columns,
    rows: rows.map((row) => chosen.map(({ key, format }) => formatCell(row[key] ?? null, format))),
  }
  writeFileSync(path.join(FIGURES, `${name}.json`), figuresText(taken))
}

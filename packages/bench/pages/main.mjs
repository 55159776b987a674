// `npm run docs:benchmarks`: writes the tables of docs/{benchmarks,scaling,comparison}.md from the figures in
// docs/benchmarks/*.json, and can measure them.
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import process from 'node:process'
import { parseArgs } from 'node:util'
import { print, ROOT, runScript, StepError } from '../../../scripts/lib/steps.mjs'
import { asRecord } from '../dist/report/read-record.js'
import { commandOf, FIGURES, figuresOf, figuresText, PAGES, readFigures, staleTables, withTables } from './figures.mjs'
import { TABLES } from './tables.mjs'

const HELP = `Writes the tables of docs/{benchmarks,scaling,comparison}.md from docs/benchmarks/*.json. Refuses figures that are
older than the code they measure allows.

  --check            only checks that the pages are what the figures say
  --measure          first takes the tables, one after the other, the most important ones first; those that were taken at
                     this commit of the code are left out, so that a run goes on where another one ended
  --only <names>     with --measure: only these tables, taken already or not
  --minutes <n>      with --measure: begins no table whose estimate goes beyond this time (default: 40)
  --dry <folder>     with --measure: tiny loads, to try all commands; the figures go to this folder, the pages stay
  --list             prints the tables with their estimates

Nothing else should run on the machine meanwhile.`

/** A table that takes so much longer than its estimate hangs. */
const LIMIT_FACTOR = 3
const LIMIT_MIN_S = 60
const BENCH = path.join(ROOT, 'packages', 'bench')

const { values } = parseArgs({
  options: {
    check: { type: 'boolean', default: false },
    measure: { type: 'boolean', default: false },
    only: { type: 'string' },
    minutes: { type: 'string', default: '40' },
    dry: { type: 'string' },
    list: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})

if (values.help) print(HELP)
else await runScript(values.list ? list : writePages)

function writePages() {
  const failures = values.measure ? measure() : []
  if (values.dry === undefined) {
    const tables = readFigures()
    const stale = values.check ? [] : staleTables(tables, changedAtMs)
    if (stale.length > 0) throw new StepError(`figures that are too old:\n  ${stale.join('\n  ')}`)
    for (const page of PAGES) {
      const text = readFileSync(page, 'utf8')
      const written = withTables(text, tables)
      if (values.check && written !== text)
        throw new StepError(`${path.basename(page)} differs from its figures: npm run docs:benchmarks`)
      if (!values.check) writeFileSync(page, written)
    }
    if (!values.check) print(`${tables.size} tables are in the pages`)
  }
  if (failures.length > 0) throw new StepError(`not taken:\n  ${failures.join('\n  ')}`)
}

function list() {
  const tables = readFigures()
  for (const name of Object.keys(TABLES)) print(`${name}: ${secondsOf(name, tables)} s`)
  print(
    `together: ${Math.round(Object.keys(TABLES).reduce((sum, name) => sum + secondsOf(name, tables), 0) / 60)} minutes`,
  )
}

/** Of the last time, else the estimate. */
function secondsOf(name, tables) {
  return tables.get(name)?.seconds ?? TABLES[name].seconds
}

/** Takes tables. @returns {string[]} a sentence for each that was not taken */
function measure() {
  const names = values.only?.split(',') ?? Object.keys(TABLES)
  const unknown = names.find((name) => !Object.hasOwn(TABLES, name))
  if (unknown !== undefined)
    throw new StepError(`there is no table ${unknown}; there are ${Object.keys(TABLES).join(', ')}`)
  const isDry = values.dry !== undefined
  // Docs do not change what is measured.
  const code = ['--', '.', ':!docs']
  if (!isDry && git('status', '--porcelain', ...code) !== '')
    throw new StepError('commit first: figures say what was measured')
  const commit = git('log', '-1', '--format=%h', '--abbrev=8', ...code)
  const folder = values.dry ?? FIGURES
  mkdirSync(folder, { recursive: true })
  const taken = readFigures(folder)
  const endMs = Date.now() + Number(values.minutes) * 60_000
  const failures = []
  for (const name of names) {
    if (values.only === undefined && taken.get(name)?.commit === commit) continue
    const seconds = secondsOf(name, taken)
    if (!isDry && Date.now() + seconds * 1_000 > endMs) {
      failures.push(`${name}: no time left for its ${seconds} s`)
      continue
    }
    print(`${new Date().toISOString().slice(11, 19)} ${name}, about ${isDry ? 5 : seconds} s`)
    try {
      const startMs = Date.now()
      const records = take(name, isDry)
      const figures = figuresOf(name, records, { commit, seconds: Math.round((Date.now() - startMs) / 1_000) })
      writeFileSync(path.join(folder, `${name}.json`), figuresText(figures))
      const failed = records.flatMap(({ rows }) => rows.filter(({ verdict }) => verdict === 'failed'))
      for (const { target, verdictReason } of failed)
        failures.push(`${name}: a row of ${target} failed: ${verdictReason}`)
    } catch (error) {
      failures.push(`${name}: ${error.message}`)
    }
  }
  return failures
}

/** Runs what makes a table. @throws {Error} with the end of the output of a run that failed. */
function take(name, isDry) {
  const { runs, dry, seconds } = TABLES[name]
  const folder = mkdtempSync(path.join(tmpdir(), 'webmq-figures-'))
  try {
    return runs.map((run, place) => {
      const file = path.join(folder, `${place}.json`)
      const [program, ...flags] = run.args
      const more = [
        ...(isDry ? dry.split(' ') : []),
        '--json',
        file,
        ...(program === 'benchmark.js' ? ['--no-progress'] : []),
      ]
      const timeout = Math.max(LIMIT_MIN_S, seconds * LIMIT_FACTOR) * 1_000
      const options = { cwd: BENCH, encoding: 'utf8', timeout, killSignal: 'SIGINT', maxBuffer: 2 ** 26 }
      const { status, error, stdout, stderr } = spawnSync(
        process.execPath,
        [path.join(BENCH, program), ...flags, ...more],
        options,
      )
      if (status !== 0)
        throw new Error(
          `${commandOf(run)}: ${error?.message ?? `exit code ${status}`}\n${`${stdout}${stderr}`.slice(-600)}`,
        )
      return asRecord(JSON.parse(readFileSync(file, 'utf8')), file)
    })
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** When the newest commit that touched a path was made. */
function changedAtMs(code) {
  const seconds = git('log', '-1', '--format=%ct', '--', code)
  if (seconds === '') throw new StepError(`no commit has touched ${code}: is it still called so?`)
  return Number(seconds) * 1_000
}

function git(...args) {
  return execFileSync('git', args, { cwd: ROOT, encoding: 'utf8' }).trim()
}

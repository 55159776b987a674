import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, vi } from 'vitest'
import { obtainPrometheus } from 'webmq-services'
import type { Finding } from '../../packages/server/src/doors/cli/doctor/target.js'
import { runInProcess } from '../../packages/server/test/cli/in-process.js'
import { ROOT, readYaml } from '../deploy/files.js'
import { type Stage, scrape } from './stage.js'
import type { StateRow } from './table.js'

const run = promisify(execFile)
const RULES = `${ROOT}deploy/prometheus/webmq.rules.yml`
/** How busy the machine of the tests is, is not to be told by them. */
const OF_MACHINE = 'WebMQEventLoopLag|WebMQMemory'

/** Holds a node in a state against each cell of its row, and fails with all those that are not as it says. */
export async function checkRow(row: StateRow, stage: Stage): Promise<void> {
  const red: string[] = []
  const cell = async (name: keyof StateRow, check: () => Promise<void> | void) => {
    try {
      await check()
    } catch (error) {
      red.push(`${name}: ${error instanceof Error ? error.message : String(error)}`)
    }
  }
  // First: of some states a node learns by a publish.
  await cell('words', async () => {
    const words = await stage.words()
    expect(words).toEqual(words.map(() => expect.stringContaining(row.words)))
  })
  await cell('ready', () =>
    vi.waitFor(async () => expect(await readyOf(stage, row.ready)).toBe(row.ready), { interval: 100 }),
  )
  await cell('metric', () =>
    vi.waitFor(async () => {
      const page = row.state === 'gone' ? '' : await scrape(stage.admin)
      expect(holds(row.metric, page), row.metric).toBe(true)
    }),
  )
  await cell('line', () =>
    vi.waitFor(() => expect(stage.lines().map(({ level, message }) => `${level}: ${message}`)).toContainLine(row.line)),
  )
  await cell('doctor', async () => {
    const ca = stage.caFile === undefined ? [] : ['--ca', stage.caFile]
    const admin = row.state === 'gone' ? [] : ['--admin', stage.admin]
    // As for the other cells: a node that paces does so for moments.
    await vi.waitFor(
      async () => {
        const { stdout } = await runInProcess(['doctor', '--json', stage.url, '--timeout', '2s', ...admin, ...ca])
        expect(doctorLines(stdout)).toContainLine(row.doctor)
      },
      { interval: 100 },
    )
  })
  await cell('alerts', () =>
    vi.waitFor(
      async () => {
        const after = row.state === 'gone' ? '' : await scrape(stage.admin)
        expect(await alertsOf(stage.before, after)).toEqual([...row.alerts].sort())
      },
      { interval: 1_000 },
    ),
  )
  expect(red).toEqual([])
}

/** What `/ready` says, in the form of the cell: of other members the cell says nothing. */
async function readyOf({ admin }: Stage, cell: string): Promise<string> {
  const response = await fetch(`${admin}/ready?full=503`).catch(() => undefined)
  if (response === undefined) return 'no answer'
  const body = (await response.json()) as Readonly<Record<string, unknown>>
  const [, ...members] = cell.split(', ')
  const told = members.map((member) => {
    const [path = '', wanted] = member.split('=')
    const value = path.split('.').reduce<unknown>((part, name) => Object(part)[name], body)
    if (value === undefined) return `no ${path}`
    return wanted === undefined ? path : `${path}=${String(value)}`
  })
  return [`${response.status} ${String(body.status)}`, ...told].join(', ')
}

/** Whether a page says of a series what the cell says: `name{label="value"} = 1`, also `>` and `<`. */
function holds(cell: string, page: string): boolean {
  const [, series = '', operator, number] = /^(.*) ([=<>]) (\S+)$/.exec(cell) ?? []
  // Prometheus says this one, of a page that did not come.
  if (series === 'up') return page === ''
  const value = samplesOf(page).get(series)
  if (value === undefined) return false
  if (operator === '=') return value === Number(number)
  return operator === '>' ? value > Number(number) : value < Number(number)
}

function samplesOf(page: string): Map<string, number> {
  const lines = page.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return new Map(lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ')))]))
}

/** `FAIL health: text`, as a terminal shows it. */
function doctorLines(text: string): string[] {
  const findings = text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Finding)
  return findings.map(({ status, check, text }) => `${status === 'fail' ? 'FAIL' : status} ${check}: ${text}`)
}

expect.extend({
  toContainLine(lines: readonly string[], begin: string) {
    const pass = begin === 'no line' || lines.some((line) => line.startsWith(begin))
    return { pass, message: () => `expected a line that begins with "${begin}" among\n${lines.join('\n')}` }
  },
})

declare module 'vitest' {
  interface Assertion {
    toContainLine(begin: string): void
  }
}

/**
 * The alerts that the rules raise when a node goes on as it did from one page to the next: gauges stay, counters grow by the
 * same each minute. `promtool` looks at minute 50, after the longest `for`.
 */
async function alertsOf(before: string, after: string): Promise<readonly string[]> {
  const { promtool } = await obtainPrometheus()
  const [then, now] = [samplesOf(before), samplesOf(after)]
  const used = new Set(readYaml(RULES.slice(ROOT.length)).groups[0].rules.flatMap(metricsOf))
  const labels = 'job="chat", instance="node-1"'
  const series = [...new Set([...then.keys(), ...now.keys()])].filter((name) => used.has(nameOf(name)))
  const inputs = series.map((name) => {
    const [, plain = '', inner] = /^(\w+)(?:\{(.*)\})?$/.exec(name) ?? []
    const places = inner === undefined ? labels : `${labels}, ${inner}`
    return { series: `${plain}{${places}}`, values: valuesOf(plain, then.get(name), now.get(name)) }
  })
  const other = { series: 'webmq_node_status{job="chat", instance="node-2", status="ok"}', values: '1x64' }
  const up = { series: `up{${labels}}`, values: `${before === '' ? '_x4' : '1x4'} ${after === '' ? '0x60' : '1x60'}` }
  const expr = `group by (alertname) (ALERTS{alertstate="firing", alertname!~"${OF_MACHINE}"})`
  const tests = [
    {
      interval: '1m',
      input_series: [other, up, ...inputs],
      promql_expr_test: [{ expr, eval_time: '50m', exp_samples: [] }],
    },
  ]
  const folder = mkdtempSync(join(tmpdir(), 'webmq-alerts-'))
  try {
    const file = join(folder, 'state.test.yml')
    writeFileSync(file, JSON.stringify({ rule_files: [RULES], evaluation_interval: '1m', tests }))
    const output = await run(promtool, ['test', 'rules', file]).then(
      ({ stdout }) => stdout,
      // Samples that are not expected: all are, so it prints them.
      ({ stdout, stderr }: { stdout: string; stderr: string }) => stdout + stderr,
    )
    if (/unknown|parse error|no such/i.test(output)) throw new Error(output)
    return [...output.matchAll(/\{alertname="(\w+)"\}/g)].map(([, alert = '']) => alert).sort()
  } finally {
    rmSync(folder, { recursive: true })
  }
}

function metricsOf({ expr }: { readonly expr: string }): string[] {
  return expr.match(/\b(?:webmq|nodejs|process)_\w+/g) ?? []
}

function nameOf(series: string): string {
  return series.split('{')[0] ?? ''
}

/** The clock of `promtool` begins at 0. */
function valuesOf(name: string, before: number | undefined, after: number | undefined): string {
  const shift = name.endsWith('_timestamp_seconds') ? Date.now() / 1_000 : 0
  const first = before === undefined ? '_x4' : `${before - shift}x4`
  if (after === undefined) return `${first} _x60`
  const step = /_(total|bucket|sum|count)$/.test(name) ? after - (before ?? after) : 0
  const from = after - shift
  return `${first} ${step === 0 ? `${from}x60` : `${from}+${step}x60`}`
}

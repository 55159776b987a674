import { spawn } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { obtainBalancer, obtainToxiproxy } from 'webmq-services'
import type { ResultRecord } from '../src/results/result.js'
import type { FleetRow } from '../src/scenarios/fleet/result.js'

const BENCHMARK = fileURLToPath(new URL('../benchmark.js', import.meta.url))
/** HAProxy may have to be installed, and toxiproxy built. */
const OBTAIN_TIMEOUT_MS = 600_000
/** A run takes ten seconds on an idle machine. */
const RUN_TIMEOUT_MS = 180_000
const USERS = 20
/** Users that listen by event streams: one fifth of each room. */
const STREAMS = 4
const LOAD = [
  ...[
    '--users',
    String(USERS),
    '--event-streams',
    String(STREAMS),
    '--publishers',
    '3',
    '--publish-rate',
    '20',
    '--rooms',
    '2',
    '--workers',
    '1',
  ],
  ...['--ramp', '0', '--steady', '0.2', '--rest', '0.2', '--down', '0.2', '--drain-per-second', '1000'],
]

describe('the fleet scenario', { timeout: RUN_TIMEOUT_MS }, () => {
  let directory: string

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'webmq-bench-'))
    await Promise.all([obtainBalancer('haproxy'), obtainBalancer('nginx'), obtainToxiproxy()])
  }, OBTAIN_TIMEOUT_MS)
  afterAll(async () => {
    await rm(directory, { recursive: true })
  })

  /** Runs the built benchmark.js as a user does. */
  function fleet(...flags: string[]) {
    const child = spawn(process.execPath, [BENCHMARK, '--scenario', 'fleet', ...LOAD, ...flags], {
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    onTestFinished(() => {
      child.kill('SIGKILL')
    })
    let output = ''
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => (output += text))
    const exitCode = new Promise<number | null>((resolve) => child.once('close', resolve))
    return { pid: child.pid ?? 0, interrupt: () => child.kill('SIGINT'), exitCode, output: () => output }
  }

  it('loses, doubles and disorders nothing while nodes are restarted and killed, and plots it', async () => {
    const files = ['fleet.json', 'fleet.html', 'fleet.svg'].map((name) => join(directory, name))
    const [json = '', html = '', svg = ''] = files
    const run = fleet(
      '--faults',
      'kill,rolling',
      '--json',
      json,
      '--html',
      html,
      '--svg',
      svg,
      '--assert',
      'gapCount=0',
    )
    expect(await run.exitCode, run.output()).toBe(0)
    const record = JSON.parse(await readFile(json, 'utf8')) as ResultRecord
    const rows = record.rows as readonly FleetRow[]
    expectUnharmed(rows, ['none', 'rolling', 'kill'], run.output())
    for (const row of rows) expect(row.target).toBe('webmq-native+redis')
    const webSocketRows = rows.filter(({ listensBy }) => listensBy === 'WebSocket')
    for (const row of webSocketRows) expect(row.serverCpuSeconds).toBeGreaterThan(0)
    const [none, rolling, kill] = webSocketRows
    expect(none).toMatchObject({ reconnectCount: 0, faultMs: null, deliveryMs: null, publishMs: null })
    // Every message of a room reaches half of the users; nobody comes while nodes break.
    for (const { fault, publishedCount, expectedCount, listenerCount } of rows) {
      if (fault !== 'none') expect(expectedCount).toBe((publishedCount * listenerCount) / 2)
    }
    // Nodes that leave answer what they have accepted.
    expect(rolling?.retriedCount).toBe(0)
    // Each client was moved, and those of the last node twice or more.
    expect(rolling?.reconnectCount).toBeGreaterThanOrEqual(USERS - STREAMS + 3)
    for (const row of [rolling, kill]) {
      expect(row?.deliveryMs).toBeGreaterThan(0)
      expect(row?.publishMs).toBeGreaterThan(0)
      expect(row?.allConnectedMs).toBeGreaterThanOrEqual(row?.reconnectMs.max ?? Number.NaN)
      expect(row?.mostOpenedIn1S).toBeGreaterThanOrEqual(row?.mostOpenedIn100Ms ?? Number.NaN)
    }
    const [timeline] = record.timelines ?? []
    expect(timeline?.bands.map(({ label }) => label)).toEqual(['rolling', 'kill'])
    expect(timeline?.panels.map(({ lines }) => lines.length)).toEqual([3, 1, 1, 1, 1, 3])
    expect(await readFile(html, 'utf8')).toContain('"bands":[{"label":"rolling"')
    expect(await readFile(svg, 'utf8')).toContain('class="band"')
  })

  it('loses nothing behind nginx, where some users listen by event streams', async () => {
    const json = join(directory, 'nginx.json')
    const run = fleet('--balancer', 'nginx', '--faults', 'rolling', '--json', json)
    expect(await run.exitCode, run.output()).toBe(0)
    const { rows } = JSON.parse(await readFile(json, 'utf8')) as { readonly rows: readonly FleetRow[] }
    expectUnharmed(rows, ['none', 'rolling'], run.output())
    for (const row of rows) expect(row.target).toBe('webmq-native+redis behind nginx')
    const [, , webSockets, streams] = rows
    expect(webSockets?.reconnectCount).toBeGreaterThanOrEqual(USERS - STREAMS + 3)
    expect(streams?.reconnectCount).toBeGreaterThanOrEqual(STREAMS)
    expect(streams?.deliveryMs).toBeGreaterThan(0)
  })

  it('leaves no process behind when it is interrupted while a node stands still', async () => {
    const run = fleet('--faults', 'stop')
    const isStanding = () => descendantsOf(run.pid).some(({ isStopped }) => isStopped)
    await expect.poll(isStanding, { timeout: RUN_TIMEOUT_MS, interval: 100 }).toBe(true)
    const processes = descendantsOf(run.pid)
    expect(processes.length).toBeGreaterThan(5)
    run.interrupt()
    expect(await run.exitCode, run.output()).toBe(130)
    const isLeft = ({ pid, started }: RunningProcess) => processOf(pid)?.started === started
    await expect.poll(() => processes.filter(isLeft)).toEqual([])
  })
})

/** Each fault has a row of WebSockets and one of event streams, and nobody missed anything. */
function expectUnharmed(rows: readonly FleetRow[], faults: readonly string[], output: string): void {
  const names = rows.map(({ fault, listensBy }) => [fault, listensBy])
  expect(names).toEqual(faults.flatMap((fault) => ['WebSocket', 'SSE'].map((listensBy) => [fault, listensBy])))
  for (const row of rows) {
    expect(row, output).toMatchObject({ verdict: 'ok', gapCount: 0, duplicateCount: 0, reorderedCount: 0 })
    expect(row).toMatchObject({ toldGapCount: 0, failedPublishCount: 0 })
    expect(row.deliveredCount).toBeGreaterThan(0)
    expect(row.deliveredCount).toBe(row.expectedCount)
  }
}

interface RunningProcess {
  readonly pid: number
  readonly parentPid: number
  readonly isStopped: boolean
  /** Distinguishes it from a later one with the same number. */
  readonly started: string | undefined
}

function descendantsOf(pid: number): RunningProcess[] {
  const all = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((name) => processOf(Number(name)))
    .filter((one) => one !== undefined)
  const children = (parent: number): RunningProcess[] =>
    all.filter(({ parentPid }) => parentPid === parent).flatMap((one) => [one, ...children(one.pid)])
  return children(pid)
}

/** By proc(5); `undefined`: it has ended. */
function processOf(pid: number): RunningProcess | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1')
    const [state, parentPid, ...fields] = text.slice(text.lastIndexOf(')') + 2).split(' ')
    if (state === 'Z') return undefined
    return { pid, parentPid: Number(parentPid), isStopped: state === 'T', started: fields[17] }
  } catch {
    return undefined
  }
}

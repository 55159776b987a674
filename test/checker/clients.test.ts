import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { lineOf, violationsOf } from '../../packages/check/src/report/report.js'
import { findGo } from '../clients/go.js'
import { findPython } from '../clients/python.js'
import { ROOT } from '../deploy/files.js'
import { firstAndInTurn } from '../in-turn.js'
import { drawSchedule } from './broker-schedules.js'
import { type Program, Troupe } from './clients/troupe.js'
import { playAlone } from './series.js'

/** `npm run test:all` plays longer ones, on all brokers: checker.test.ts. */
const LENGTH_MS = 3_000
/** Start, recovery, the last deliveries, and a machine that does other things. */
const MAX_PLAY_MS = 90_000

const [python, go] = [await findPython(), await findGo()]
const adapterOf = (program: string, file: string, env = process.env): Program => ({
  command: [program, `${ROOT}${file}`],
  env,
})
const CLIENTS: [[string, Program], ...[string, Program][]] = [
  ['javascript', adapterOf(process.execPath, 'packages/conformance/adapters/javascript.mjs')],
]
if (python.program) CLIENTS.push(['python', adapterOf(python.program, 'clients/python/tests/adapter.py', python.env)])
if (go.adapter) CLIENTS.push(['go', { command: [go.adapter] }])

describe.each(firstAndInTurn(CLIENTS))('the client %s, played by the checker', (name, program) => {
  let troupe: Troupe

  beforeAll(async () => {
    troupe = await Troupe.start(name, program)
  })
  afterAll(() => troupe.stop())

  it('keeps its promises while it is cut, stalls and moves, and its node is killed', {
    timeout: MAX_PLAY_MS,
  }, async () => {
    const seed = 1 + Math.floor(Math.random() * 100_000)
    const drawn = drawSchedule('memory', seed, LENGTH_MS, 'clients cut, stall and move')
    const kill = { atMs: LENGTH_MS / 2, forMs: 200, what: 'kill-node', node: 0 } as const
    const played = await playAlone({ ...drawn, steps: [...drawn.steps, kill] }, troupe.company())
    expect(played.violations, `${lineOf(played, 0)}\n${violationsOf(played)}`).toEqual([])
    expect(played.record?.listeners.some(({ events }) => events.some(({ what }) => what === 'message'))).toBe(true)
  })
})

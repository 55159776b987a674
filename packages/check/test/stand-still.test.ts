import { expect, it } from 'vitest'
import { judge } from '../src/judging/judge.js'
import type { FaultRecord } from '../src/judging/record.js'
import { stoodStillMs, watchStandStill } from '../src/playing/stand-still.js'
import { HistoryBuilder, RULES } from './history-builder.js'

const STILL_MS = 1_200

/** Nothing of this process runs. */
function standStill(): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, STILL_MS)
}

// A machine that stood still for two minutes showed as publishes without an answer, and connections that were closed as
// silent: the judge had taken the times for those of the server.
it('is a fault while which no time is measured', async () => {
  const faults: FaultRecord[] = []
  const end = watchStandStill(faults, () => performance.now())
  const beganAtMs = performance.now()
  standStill()
  await expect.poll(() => faults.length).toBeGreaterThan(0)
  end()
  expect(stoodStillMs(faults, beganAtMs)).toBeGreaterThan(STILL_MS / 2)
  expect(stoodStillMs(faults, performance.now())).toBe(0)

  const history = new HistoryBuilder()
  history.listener('l', 'a.x').listens('e:1.AAAAB')
  const [connection] = history.record.connections
  const sentAtMs = history.step()
  const fromMs = history.nowMs
  const untilMs = history.step(120_000)
  connection?.requests.push({ id: '1', verb: 'publish', sentAtMs, answeredAtMs: untilMs })
  Object.assign(connection ?? {}, { closed: { code: 4003, by: 'server', atMs: untilMs } })
  expect(judge(history.end(), RULES).map(({ rule }) => rule)).toEqual(['close-code', 'slow-answer'])
  for (const fault of faults.slice(0, 1)) history.record.faults.push({ ...fault, fromMs, untilMs })
  expect(judge(history.record, RULES)).toEqual([])
})

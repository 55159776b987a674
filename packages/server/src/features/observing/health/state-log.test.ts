import { expect, it } from 'vitest'
import type { Health } from './readiness.js'
import { StateLog } from './state-log.js'

const WELL: Health = {
  status: 'ok',
  node: 'n',
  version: '1',
  uptimeMs: 0,
  connections: 0,
  broker: { name: 'redis', status: 'up', sinceMs: 0 },
}
const MINUTE_MS = 60_000

function stateLog() {
  const lines: string[] = []
  const at = (level: string) => (fields: object, text: string) =>
    void lines.push(`${level} ${JSON.stringify(fields)} ${text.replace(/\. .*/, '')}`)
  let nowMs = 0
  let health = WELL
  const log = new StateLog({
    health: () => health,
    logger: { info: at('info') as never, warn: at('warn') as never },
    now: () => nowMs,
  })
  /** Lines until then. */
  const pass = (minutes: number, next: Partial<Health>) => {
    health = { ...WELL, ...next }
    const endMs = nowMs + minutes * MINUTE_MS
    for (; nowMs < endMs; nowMs += 5_000) log.look()
    return lines.splice(0)
  }
  return pass
}

// Symptom: 25 minutes of outage were one line. Cause: the loss was logged, and nothing after it.
it('repeats every five minutes how long an outage lasts', () => {
  const pass = stateLog()
  const down = { broker: { name: 'redis', status: 'down', reason: 'gone', sinceMs: 0 } } as const
  const line = (minutes: number) =>
    `warn {"state":"broker-down","forMs":${minutes * MINUTE_MS}} the state of the node: its broker is down: gone`
  expect(pass(4, down)).toEqual([])
  expect(pass(12, down)).toEqual([line(5), line(10), line(15)])
  expect(pass(1, {})).toEqual([`info {"state":"broker-down","forMs":${16 * MINUTE_MS}} the state of the node is over`])
  expect(pass(9, {})).toEqual([])
})

// Symptom: one lost line of the audit log was said every five minutes until the restart. Cause: the sum since the start lasts.
it('repeats that lines are lost only as long as more are lost', () => {
  const pass = stateLog()
  expect(pass(30, { auditLinesLost: 1 })).toEqual([])
  const lines = [
    ...pass(4, { auditLinesLost: 2 }),
    ...pass(4, { auditLinesLost: 3 }),
    ...pass(30, { auditLinesLost: 4 }),
  ]
  expect(lines).toEqual([
    `warn {"state":"audit log","forMs":${5 * MINUTE_MS}} the state of the node: it has lost 3 lines of its audit log since its start`,
    `warn {"state":"audit log","forMs":${10 * MINUTE_MS}} the state of the node: it has lost 4 lines of its audit log since its start`,
    `info {"state":"audit log","forMs":${13 * MINUTE_MS}} the state of the node is over`,
  ])
  const waiting = pass(6, { auditLinesLost: 4, auditWaitingBytes: 9 })
  expect(waiting.join()).toContain('9 bytes of its audit log wait to be written')
})

it('says at once what nobody else says, and of what comes and goes one line in five minutes', () => {
  const pass = stateLog()
  const text = 'the state of the node: its clock is 90 s apart from that of another node'
  expect(pass(1, { clockApartMs: 90_000 })).toEqual([`warn {"state":"clocks","forMs":0} ${text}`])
  expect(pass(1, {})).toEqual([`info {"state":"clocks","forMs":${MINUTE_MS}} the state of the node is over`])
  expect(pass(1, { clockApartMs: 90_000 })).toEqual([])
  expect(pass(1, {})).toEqual([])
  expect(pass(2, { clockApartMs: 90_000 })).toHaveLength(1)
})

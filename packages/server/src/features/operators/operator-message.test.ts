import { expect, it } from 'vitest'
import { operatorMessageFrom } from './operator-message.js'

/** What nodes of an older version tell. */
const LEAST = {
  node: 'n',
  version: '0.1.0',
  status: 'ok',
  uptimeMs: 1,
  connections: 3,
  patterns: 0,
  receivedPerSecond: 0,
  sentPerSecond: 0.5,
  broker: 'redis',
  brokerStatus: 'up',
}

const read = (summary: object) =>
  operatorMessageFrom({
    node: 'n',
    topic: 'operators',
    kind: 'summary',
    fields: { round: 1, summary },
    payload: Buffer.alloc(0),
  })

it('reads the summary of an older version, of this one and of a later one, but none with a member that makes no sense', () => {
  expect(read(LEAST)).toMatchObject({ kind: 'summary', summary: LEAST })
  const full = { ...LEAST, cpu: 0.2, memoryBytes: 5, eventLoopDelayMs: 1.5, brokerMs: 0.2, gaps: 1, later: 'x' }
  expect(read(full)).toMatchObject({ summary: full })
  expect(read({ ...LEAST, cpu: 'much' })).toBeUndefined()
  expect(read({ ...LEAST, gaps: -1 })).toBeUndefined()
})

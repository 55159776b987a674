import { expect, it } from 'vitest'
import type { LogPlace } from '../../kernel/ports/shared-log.js'
import { LogAgreement } from './log-agreement.js'

function agreement() {
  const said: string[] = []
  const calls: (() => void)[] = []
  const doubts: LogPlace[] = []
  const log = {
    doubtedUpTo: undefined as LogPlace | undefined,
    isMarked: true,
    reopen: async (isKnown: boolean) => {
      said.push(isKnown ? 'reopened' : 'begun')
      log.isMarked = true
    },
    dispute: async (isDisputed: boolean) => {
      said.push(isDisputed ? 'disputed' : 'agreed')
    },
    doubt: (upTo: LogPlace) => doubts.push(upTo) === 1,
  }
  const context = { loggedKeys: 'own', log, missed: () => said.push('missed') }
  const nodes = new LogAgreement(context, (call) => calls.push(call))
  /** The time has passed. */
  const pass = () => {
    for (const call of calls.splice(0)) call()
  }
  const take = (node: string, lease: object, hasListeners = true) => nodes.take(node, lease, hasListeners)
  return { nodes, log, said, doubts, pass, take, taken: () => said.splice(0) }
}

it('disputes the log from when a node logs other keys until an interval after the last one is gone', () => {
  const { nodes, pass, take, taken } = agreement()
  for (const lease of [{ loggedKeys: 'other', starts: true }, { loggedKeys: 'other' }])
    expect(take('a', lease)).toBe(true)
  expect(taken()).toEqual(['disputed'])
  expect(take('b', { loggedKeys: 'third', starts: true })).toBe(true)
  expect([taken(), nodes.differentCount]).toEqual([['disputed'], 2])
  nodes.gone('a')
  pass()
  nodes.gone('b')
  expect([taken(), nodes.differentCount]).toEqual([[], 0])
  expect(take('c', { loggedKeys: 'other', starts: true })).toBe(true)
  pass()
  nodes.gone('c')
  nodes.gone('c')
  expect(taken()).toEqual(['disputed'])
  pass()
  expect(taken()).toEqual(['agreed'])
})

it('says that messages were missed where the other node was there before this one has heard of it', () => {
  const { take, taken } = agreement()
  take('a', { loggedKeys: 'other' }, false)
  expect(taken()).toEqual(['disputed'])
  take('b', { loggedKeys: 'other' })
  expect(taken()).toEqual(['disputed', 'missed'])
})

it('says so where the other node came and went while this one was cut off', () => {
  const { nodes, pass, take, taken } = agreement()
  const doubt = { epoch: 'e', offset: 3 }
  nodes.cutOff(true)
  take('a', { loggedKeys: 'own', doubt })
  expect(taken()).toEqual(['missed'])
  take('a', { loggedKeys: 'own', doubt })
  expect(taken()).toEqual([])
  const other = agreement()
  other.nodes.cutOff(true)
  other.pass()
  other.take('a', { loggedKeys: 'own', doubt })
  pass()
  expect(other.taken()).toEqual([])
})

// Symptom: listeners of a node that had opened the log once more before it served anybody were told `broker-lost`.
it('does not say so to those who listen since this node is back', () => {
  const { nodes, take, taken } = agreement()
  nodes.cutOff(false)
  take('a', { loggedKeys: 'own', doubt: { epoch: 'e', offset: 3 } })
  expect(taken()).toEqual([])
})

it('takes a node that does not tell which keys it logs for one that agrees, and is quiet among those that do', () => {
  const { nodes, pass, take, taken } = agreement()
  for (const loggedKeys of ['own', undefined, 5, null]) expect(take('a', { loggedKeys })).toBe(false)
  nodes.gone('a')
  pass()
  expect(taken()).toEqual([])
})

it('tells other nodes up to where the log is in doubt, and takes a place from them', () => {
  const { nodes, log, doubts, take } = agreement()
  expect(nodes.fields()).toEqual({ loggedKeys: 'own' })
  for (const doubt of [
    null,
    1,
    {},
    { epoch: '', offset: 1 },
    { epoch: 'e', offset: -1 },
    { epoch: 'e'.repeat(53), offset: 1 },
  ])
    take('a', { loggedKeys: 'own', doubt })
  expect(doubts).toEqual([])
  const doubt = { epoch: 'e', offset: 3 }
  take('a', { loggedKeys: 'own', doubt })
  expect(doubts).toEqual([doubt])
  log.doubtedUpTo = doubt
  expect(nodes.fields()).toEqual({ loggedKeys: 'own', doubt })
})

it('begins another epoch where the log is not marked and no node serves that knows what it lacks', async () => {
  for (const [lease, said] of [
    [undefined, ['begun']],
    [{ loggedKeys: 'own', starts: true }, ['begun']],
    [{ loggedKeys: 'own' }, ['reopened']],
    [{ loggedKeys: 'other' }, ['reopened', 'disputed']],
    [{ loggedKeys: 'other', starts: true }, ['disputed']],
  ] as const) {
    const { nodes, log, take, taken } = agreement()
    log.isMarked = false
    if (lease !== undefined) take('a', lease, false)
    taken()
    await nodes.settle()
    expect(taken()).toEqual(said)
  }
  const { nodes, log, take, taken } = agreement()
  await nodes.settle()
  expect(taken()).toEqual([])
  log.isMarked = false
  take('a', { loggedKeys: 'own' })
  nodes.gone('a')
  expect(nodes.isKnown).toBe(false)
})

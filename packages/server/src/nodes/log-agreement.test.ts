import { expect, it } from 'vitest'
import { LogAgreement, type LogDoubt } from './log-agreement.js'

function agreement() {
  const missed: number[] = []
  const doubted: LogDoubt[] = []
  const calls: (() => void)[] = []
  const end = { epoch: 'e', offset: 7 }
  const log = new LogAgreement(
    {
      loggedKeys: 'own',
      missed: () => {
        missed.push(calls.length)
        return { ...end }
      },
      doubted: (doubt) => {
        doubted.push(doubt)
        return doubt
      },
    },
    (call) => calls.push(call),
  )
  /** The interval has passed. */
  const pass = () => calls.splice(0).map((call) => call()).length
  return { log, missed, doubted, end, pass }
}

it('says that messages may be missing when a node logs other keys, while it does, when it ends, and an interval after that', () => {
  const { log, missed, pass } = agreement()
  for (const loggedKeys of ['other', 'other']) expect(log.take('a', { loggedKeys })).toBe(true)
  expect([missed.length, log.differentCount]).toEqual([1, 1])
  expect(log.take('b', { loggedKeys: 'third' })).toBe(true)
  expect([missed.length, log.differentCount]).toEqual([2, 2])
  for (let count = 3; count < 6; count++) {
    expect(pass()).toBe(1)
    expect(missed).toHaveLength(count)
  }
  log.gone('a')
  log.gone('b')
  expect([missed.length, log.differentCount]).toEqual([7, 0])
  // The first of these may come at once: it was scheduled before they went.
  for (const count of [8, 9]) {
    expect(pass()).toBe(1)
    expect(missed).toHaveLength(count)
  }
  expect(pass()).toBe(0)
  log.take('c', { loggedKeys: 'other' })
  expect([pass(), missed.length]).toEqual([1, 11])
})

it('takes a node that does not tell which keys it logs for one that agrees, and is quiet among those that do', () => {
  const { log, missed, pass } = agreement()
  for (const loggedKeys of ['own', undefined, 5, null]) expect(log.take('a', { loggedKeys })).toBe(false)
  log.gone('a')
  expect([missed, pass()]).toEqual([[], 0])
})

it('tells other nodes up to where messages may be missing, as it knows it itself or by others', () => {
  const { log, doubted, end, pass } = agreement()
  expect(log.fields()).toEqual({ loggedKeys: 'own' })
  for (const doubt of [
    null,
    1,
    {},
    { epoch: '', offset: 1 },
    { epoch: 'e', offset: -1 },
    { epoch: 'e'.repeat(53), offset: 1 },
  ])
    log.take('a', { loggedKeys: 'own', doubt })
  expect(doubted).toEqual([])
  log.take('a', { loggedKeys: 'own', doubt: { epoch: 'e', offset: 3 } })
  expect(log.fields()).toEqual({ loggedKeys: 'own', doubt: { epoch: 'e', offset: 3 } })
  log.take('a', { loggedKeys: 'other' })
  expect(log.fields()).toMatchObject({ doubt: { epoch: 'e', offset: 7 } })
  end.offset = 9
  pass()
  expect(log.fields()).toMatchObject({ doubt: { epoch: 'e', offset: 9 } })
})

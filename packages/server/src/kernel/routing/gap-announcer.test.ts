import { describe, expect, it, vi } from 'vitest'
import { Router } from '../patterns/router.js'
import { GapAnnouncer } from './gap-announcer.js'

function announcerFor(patternCount: number) {
  const router = new Router()
  const routes = Array.from({ length: patternCount }, (_, index) => router.add(`a.${index}`))
  const told: string[] = []
  const announcer = new GapAnnouncer(router, ({ pattern, group }, reason) => told.push(`${pattern} ${group} ${reason}`))
  return { router, routes, told, announcer }
}

const turn = () => new Promise((resolve) => setImmediate(resolve))

describe('GapAnnouncer', () => {
  it('tells everyone once, a thousand patterns in a turn', async () => {
    const { told, announcer } = announcerFor(2_500)
    announcer.announce('broker-lost', () => true)
    expect(told).toHaveLength(1_000)
    await vi.waitFor(() => expect(told).toHaveLength(2_500))
    await turn()
    expect(new Set(told).size).toBe(2_500)
    announcer.beforeMessage([1, 2_400] as never, false)
    expect(told).toHaveLength(2_500)
  })

  it('tells some groups at the end of the turn, once, and before their next message', async () => {
    const { told, routes, announcer } = announcerFor(3)
    const [first, second] = routes.map(({ group }) => group)
    if (first === undefined || second === undefined) throw new Error('no routes')
    for (const groups of [[first], [first, second], [first]]) announcer.announceTo(groups, 'refused')
    expect(told).toEqual([])
    announcer.beforeMessage([second], false)
    expect(told).toEqual([`a.1 ${second} refused`])
    await turn()
    expect(told).toEqual([`a.1 ${second} refused`, `a.0 ${first} refused`])
  })

  it('tells those who are to get a message before it, out of turn, and only once', async () => {
    const { told, routes, announcer } = announcerFor(2_500)
    announcer.announce('broker-lost', () => true)
    const late = routes[2_400]
    if (late === undefined) throw new Error('no route')
    announcer.beforeMessage([late.group], false)
    expect(told.at(-1)).toBe(`a.2400 ${late.group} broker-lost`)
    await vi.waitFor(() => expect(told).toHaveLength(2_500))
    expect(told.filter((line) => line.startsWith('a.2400 '))).toHaveLength(1)
  })

  it('tells everyone before a message with a position, which counts for all patterns of a connection [P-8.7]', () => {
    const { told, routes, announcer } = announcerFor(2_500)
    announcer.announce('history-expired', () => true)
    const [first] = routes
    if (first === undefined) throw new Error('no route')
    announcer.beforeMessage([first.group], true)
    expect(new Set(told).size).toBe(2_500)
    expect(announcer.isTelling).toBe(false)
  })

  it('tells nobody who has begun to listen since, under the number of a group that is used again', async () => {
    const { router, told, announcer } = announcerFor(1_500)
    announcer.announce('broker-lost', () => true)
    router.remove('a.1400')
    router.remove('a.1401')
    const reused = router.add('new')
    router.add('a.1400')
    announcer.beforeMessage([reused.group], false)
    await vi.waitFor(() => expect(told).toHaveLength(1_498))
    await turn()
    expect(told.filter((line) => /^(new|a\.140[01]) /.test(line))).toEqual([])
  })

  it('tells those who have begun to listen since of what is refused from then on', async () => {
    const { router, routes, told, announcer } = announcerFor(3)
    announcer.announceTo(
      routes.map(({ group }) => group),
      'refused',
    )
    router.remove('a.2')
    const reused = router.add('new')
    expect(reused.group).toBe(routes[2]?.group)
    announcer.announceTo([reused.group], 'refused')
    await turn()
    expect(told.map((line) => line.split(' ')[0])).toEqual(['a.0', 'a.1', 'new'])
  })

  it('tells of a second gap whoever was told of the first, and stops when it is told to', async () => {
    const { told, announcer } = announcerFor(1_200)
    announcer.announce('broker-lost', () => true)
    announcer.announce('slow-consumer', () => true)
    await vi.waitFor(() => expect(told.filter((line) => line.endsWith('slow-consumer'))).toHaveLength(1_200))
    announcer.announce('broker-lost', () => true)
    announcer.stop()
    const count = told.length
    await turn()
    await turn()
    expect(told).toHaveLength(count)
  })
})

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { LOG_PLACES, type LogPlace, writeForeign } from './foreign-log.js'
import { House, LEASE_MS } from './house.js'
import { readRow } from './readers.js'
import { TEXTS } from './texts.js'

const LARGE_BYTES = 500_000
/** Each of the ways in which a text is taken from the log meets the large ones, too: they cost seconds. */
const WITH_LARGE: readonly LogPlace[] = ['message', 'start', 'append', 'end', 'append of a shared stream']

function textsFor(place: LogPlace) {
  return TEXTS.filter(({ bytes }) => bytes.length < LARGE_BYTES || WITH_LARGE.includes(place))
}

// A log has what other programs, other versions and this one of yesterday have written. One text in it was answered with 500
// at every node, and ended those that folded its stream: what is there already is read without harm.
describe('a text that is in the log', () => {
  let house: House
  /** Of all cells, for those who come later. */
  const keys: string[] = []

  beforeAll(async () => {
    house = await House.open()
  })

  afterAll(() => house.close())

  it.each(LOG_PLACES)('as %s', async (place) => {
    const { broker } = house
    if (broker === undefined) throw new Error('there is no memory broker')
    const cells: Record<string, string> = {}
    const wanted: Record<string, string> = {}
    for (const text of textsFor(place)) {
      const key = house.key()
      keys.push(key)
      await writeForeign(broker, place, text, key)
      const row = await readRow(house, key, text, place)
      Object.assign(cells, row.cells)
      Object.assign(wanted, row.wanted)
    }
    expect(cells).toEqual(wanted)
  })

  it('does no harm when leases end and ended streams become one message, and is read as before', async () => {
    await new Promise((resolve) => setTimeout(resolve, 1.5 * LEASE_MS))
    expect(await house.harm()).toBe('')
    const statuses = new Set<number>()
    for (const key of keys) statuses.add((await house.http('GET', `/api/streams?key=${key}`)).status)
    expect([...statuses].filter((status) => status >= 500)).toEqual([])
    expect(await house.harm()).toBe('')
  })
})

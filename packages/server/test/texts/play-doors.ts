import { expect, it } from 'vitest'
import type { Door } from './door.js'
import type { House } from './house.js'
import { TEXTS } from './texts.js'

/** A test for each door, whose cells are all texts. Each leaves the node unharmed. */
export function playDoors(houseOf: () => House, doors: readonly Door<House>[]): void {
  it.each(doors)('$name', async ({ give, expected, mayTell = false }) => {
    const house = houseOf()
    const cells: Record<string, string> = {}
    const wanted: Record<string, string> = {}
    for (const text of TEXTS) {
      const outcome = await give(house, text).catch((error: unknown) => `thrown: ${error}`)
      const cell = `${outcome}${await house.harm(mayTell)}`
      const allowed = [expected(text)].flat()
      cells[text.name] = cell
      wanted[text.name] = allowed.includes(cell) ? cell : allowed.join(' or ')
    }
    expect(cells).toEqual(wanted)
  })
}

import type { Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { expectAccessible } from '../accessible.js'
import { useExample } from './harness.js'

describe('the example whiteboard', () => {
  const board = useExample('whiteboard')

  /** Draws a line in `segments` moves. */
  async function draw(page: Page, y: number, segments: number): Promise<void> {
    const { x, y: top } = (await page.locator('canvas').boundingBox()) ?? { x: 0, y: 0 }
    await page.mouse.move(x + 50, top + y)
    await page.mouse.down()
    for (let index = 1; index <= segments; index++) await page.mouse.move(x + 50 + index * 20, top + y)
    await page.mouse.up()
  }

  const shows = (page: Page, segments: number) =>
    page.locator(`canvas[data-segments="${segments}"]`).waitFor({ timeout: 20_000 })
  const isIn = (page: Page, state: string) => page.locator('#state', { hasText: state }).waitFor({ timeout: 20_000 })
  const pixels = (page: Page) => page.evaluate(() => document.querySelector('canvas')?.toDataURL())

  it('merges what two pages draw offline, over a server that has lost everything', async () => {
    const [one, other] = [await board.openPage(), await board.openPage()]
    await draw(one, 100, 3)
    await shows(other, 3)
    // The cursor of the one is on the page of the other.
    await other.locator('.cursor').waitFor()

    await board.example.server.stop('SIGKILL')
    for (const page of [one, other]) await isIn(page, 'reconnecting')
    await draw(one, 200, 4)
    await draw(other, 300, 5)
    await shows(one, 7)
    await shows(other, 8)

    await board.example.server.start()
    for (const page of [one, other]) await shows(page, 12)
    const later = await board.openPage()
    await shows(later, 12)
    expect(await pixels(other)).toBe(await pixels(one))
    expect(await pixels(later)).toBe(await pixels(one))
    await expectAccessible(later)
  })
})

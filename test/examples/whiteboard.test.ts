import { describe, it } from 'vitest'
import { useExample } from './harness.js'

describe('the example whiteboard', () => {
  const { openPage } = useExample('whiteboard')

  it('shows what another page draws', async () => {
    const [one, other] = [await openPage(), await openPage()]
    await one.mouse.move(100, 100)
    await one.mouse.down()
    await one.mouse.move(200, 150)
    await one.mouse.up()
    await other.locator('canvas[data-strokes="1"]').waitFor()
  })
})

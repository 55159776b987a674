import axe from 'axe-core'
import type { Page } from 'playwright-core'
import { expect } from 'vitest'

const PHONE = { width: 390, height: 844 }

/**
 * Expects a page to fit a phone, and axe to find nothing, light and dark. The page is then as wide as a phone.
 * @param only Selector of the part that is looked at; the whole page by default.
 */
export async function expectAccessible(page: Page, only = 'html'): Promise<void> {
  await page.setViewportSize(PHONE)
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
    await page.evaluate(axe.source)
    const found = await page.evaluate(async (selector) => {
      const { violations } = await (globalThis as unknown as { axe: typeof axe }).axe.run(selector)
      return violations.flatMap(({ id, nodes }) =>
        nodes.map(({ html, failureSummary }) => ({ id, html, failureSummary })),
      )
    }, only)
    expect(found, colorScheme).toEqual([])
    expect(await page.evaluate(() => document.documentElement.scrollWidth), 'width in px').toBe(PHONE.width)
  }
}

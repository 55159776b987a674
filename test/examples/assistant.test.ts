import type { Page } from 'playwright-core'
import { afterAll, describe, expect, it } from 'vitest'
import { expectAccessible } from '../accessible.js'
import { useExample } from './harness.js'

// Slow enough for what a test does meanwhile: 90 words.
process.env.WORD_MS = '600'
afterAll(() => {
  delete process.env.WORD_MS
})

const PHONE = { width: 390, height: 844 }

describe('the example assistant', () => {
  const assistant = useExample('assistant')

  const ACTIVE = '[data-active] p'
  const shows = (page: Page, selector: string, text: string) =>
    page.locator(selector, { hasText: text }).first().waitFor({ timeout: 20_000 })
  const textOf = async (page: Page) => (await page.locator('li p').allTextContents()).join('\n')

  async function ask(page: Page, question: string): Promise<void> {
    await page.locator('input').fill(question)
    await page.locator('button', { hasText: 'Ask' }).click()
    await page.locator(ACTIVE).waitFor()
  }

  it('shows an answer on all screens while it is written, after a reload too, and stops it from any', async () => {
    const [desk, phone] = [await assistant.openPage(), await assistant.openPage()]
    await phone.setViewportSize(PHONE)
    await phone.locator('form').waitFor()
    await ask(desk, 'Why')
    for (const page of [desk, phone]) await shows(page, ACTIVE, '“Why” is a good question. 🤔')
    await phone.reload()
    await shows(phone, ACTIVE, '“Why” is a good question. 🤔')
    await expectAccessible(phone)
    expect(await phone.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(PHONE.width)
    await phone.locator('button', { hasText: 'Stop' }).click()
    for (const page of [desk, phone]) await shows(page, 'small', 'stopped')
    expect(await textOf(phone)).toBe(await textOf(desk))
    expect(await textOf(desk)).toMatch(/^“Why” is a good/)
    expect(await textOf(desk)).not.toContain('the model stops, once.')
    await ask(phone, 'And then')
    await shows(desk, ACTIVE, '“And then” is a')
    await desk.locator('button', { hasText: 'Stop' }).click()
    await desk.locator('li small').nth(1).waitFor()
    await expectAccessible(desk)
  })
})

import type { Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { expectAccessible } from '../accessible.js'
import { useExample } from './harness.js'

describe('the example worker', () => {
  const workers = useExample('worker')

  async function ask(page: Page, below: number): Promise<{ text: string; worker?: string; error?: string }> {
    const before = await page.locator('li').count()
    await page.locator('input').fill(String(below))
    await page.locator('button').click()
    const line = page.locator('li').nth(before)
    await line.locator('xpath=self::*[@data-worker or @data-error]').waitFor({ timeout: 20_000 })
    const { worker, error } = await line.evaluate((item) => ({ ...(item as HTMLElement).dataset }))
    return { text: (await line.textContent()) ?? '', ...(worker && { worker }), ...(error && { error }) }
  }

  it('shares the requests of a page between two workers, and says at once when there is none', async () => {
    const page = await workers.openPage()
    const seen = new Set<string>()
    await expect.poll(async () => (await ask(page, 1_000)).text).toContain('168 primes')
    await expect
      .poll(async () => {
        const { worker } = await ask(page, 1_000)
        if (worker !== undefined) seen.add(worker)
        return seen.size
      })
      .toBe(2)
    expect(await ask(page, 2_000_000)).toMatchObject({ text: '2000000: at most 1000000', error: 'E_RESPONSE' })

    const [one, two] = workers.example.programs.filter(({ name }) => name.endsWith('worker'))
    await one?.stop('SIGKILL')
    // The other one gets them all.
    for (let count = 0; count < 3; count++) expect((await ask(page, 100)).text).toContain('25 primes')
    await two?.stop()
    await expect.poll(async () => (await ask(page, 100)).error).toBe('E_NO_RESPONDERS')
    await one?.start()
    await expect.poll(async () => (await ask(page, 100)).text).toContain('25 primes')
    await expectAccessible(page)
  })
})

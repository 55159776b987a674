import type { Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { expectAccessible } from '../accessible.js'
import { useExample } from './harness.js'

describe('the example chat', () => {
  const chat = useExample('chat')

  async function enter(name: string): Promise<Page> {
    const page = await chat.openPage(`?name=${name}`)
    await shows(page, 'p', new RegExp(`Here:.*${name}`))
    return page
  }

  const shows = (page: Page, selector: string, text: string | RegExp) =>
    page.locator(selector, { hasText: text }).first().waitFor({ timeout: 20_000 })
  const lines = (page: Page) => page.locator('li span').allTextContents()

  async function send(page: Page, text: string): Promise<void> {
    await page.locator('input').fill(text)
    await page.locator('input').press('Enter')
  }

  it('shows who is there and who types, each message once, and older ones', async () => {
    const [ada, bob] = [await enter('Ada'), await enter('Bob')]
    await shows(ada, 'p', /Ada.*Bob|Bob.*Ada/)
    await bob.locator('input').pressSequentially('h')
    await shows(ada, 'output', 'Bob is typing')
    await send(bob, 'hi')
    for (const page of [ada, bob]) await shows(page, 'li:not([class])', 'Bob: hi')
    expect(await lines(bob)).toEqual(['Bob: hi'])
    await expect.poll(() => ada.locator('output').textContent()).toBe('')

    for (let n = 1; n <= 11; n++) await send(ada, `message ${n}.`)
    for (const page of [ada, bob]) await shows(page, 'li:not([class])', 'message 11.')
    const all = ['Bob: hi', ...Array.from({ length: 11 }, (_, n) => `Ada: message ${n + 1}.`)]
    expect(await lines(bob)).toEqual(all.slice(-10))
    await bob.locator('button', { hasText: 'Older' }).click()
    await shows(bob, 'li', 'Bob: hi')
    expect(await lines(bob)).toEqual(all)
    await expectAccessible(bob)
    await ada.context().close()
    await bob.locator('p', { hasText: /Here: Bob$/ }).waitFor()
    await bob.context().close()
  })

  it('shows a message at once while the server is away, and sends it later', async () => {
    const [ada, bob] = [await enter('Ada'), await enter('Bob')]
    await chat.example.server.stop('SIGKILL')
    await send(ada, 'later')
    await shows(ada, 'li.pending', 'Ada: later')
    await chat.example.server.start()
    for (const page of [ada, bob]) await shows(page, 'li:not([class])', 'Ada: later')
    expect((await lines(ada)).filter((line) => line.includes('later'))).toEqual(['Ada: later'])
  })
})

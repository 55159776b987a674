import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect } from 'vitest'
import { type RunningExample, startExample } from '../../scripts/lib/examples.mjs'
import { startChromium } from '../chromium.js'

export interface ExampleTest {
  readonly example: RunningExample
  /**
   * Opens the example's page in a window of its own, with its own storage. A second tab of that window:
   * `page.context().newPage()`.
   * @param search The query of the address, such as `?name=Ada`.
   */
  openPage(search?: string): Promise<Page>
}

/**
 * Starts an example once for the tests of a file, with one Chromium. When they end, fails if a page threw an error.
 * Call it in a `describe`; what it returns works in hooks and tests.
 */
export function useExample(name: string): ExampleTest {
  let browser: Browser
  let example: RunningExample
  const problems: string[] = []

  beforeAll(async () => {
    ;[example, browser] = await Promise.all([startExample(name), startChromium()])
  })

  afterAll(async () => {
    await browser?.close()
    await example?.close()
    expect(problems, 'errors of the pages').toEqual([])
  })

  return {
    get example() {
      return example
    },
    async openPage(search = '') {
      const context = await browser.newContext()
      context.on('weberror', (error) => problems.push(error.error().message))
      const page = await context.newPage()
      await page.goto(`${example.url}${search}`)
      return page
    },
  }
}

import { existsSync, readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { groupsOf, ROOT, readPage, sitePages } from '../../site/pages.ts'
import { tokensOf } from '../../site/playground/highlight.ts'
import { PLAYGROUNDS } from '../../site/playground/places.ts'
import { folderOf, releasesOf } from '../../site/versions.ts'
import { expectAccessible } from '../accessible.js'
import { startChromium } from '../chromium.js'
import { buildAndServe } from './serve.js'

/** What the left page of each example logs. */
const SHOWN: Readonly<Record<string, string | RegExp>> = {
  recovered: /message \d/,
  gap: /message \d/,
  loaded: 'load, because: initial',
  history: 'message 1, message 2, message 3',
  latest: /prices\.eur \d\d/,
  state: 'seats.0 Ada',
  requests: '1 + 2 + 3 = 6',
  presence: 'Ada is happy',
  streams: 'a stream is a',
  concurrency: /message \d+ is saved/,
  meta: /ada: message \d+, \d{4}-/,
}

/** Eleven pages begin at once on a busy machine. */
const WAIT_MS = 120_000

const pages = sitePages()
let site: Awaited<ReturnType<typeof buildAndServe>>
let browser: Browser
const problems: string[] = []
const foreign: string[] = []

beforeAll(async () => {
  ;[site, browser] = await Promise.all([buildAndServe(), startChromium()])
}, 300_000)

afterAll(async () => {
  await browser?.close()
  site?.close()
})

const built = (name: string) => readFileSync(path.join(site.out, name), 'utf8')

async function open(name: string, viewport = { width: 1280, height: 900 }): Promise<Page> {
  const page = await browser.newPage({ viewport })
  page.setDefaultTimeout(WAIT_MS)
  page.on('pageerror', (error) => problems.push(`${name}: ${error.message}`))
  page.on('console', (message) => message.type() === 'error' && problems.push(`${name}: ${message.text()}`))
  page.on('request', (request) => {
    const { hostname, protocol } = new URL(request.url())
    if (/^(http|ws)/.test(protocol) && hostname !== '127.0.0.1') foreign.push(request.url())
  })
  await page.goto(site.url + name)
  return page
}

describe('the site', () => {
  it('has every page, and no link of it is dead', () => {
    expect(pages.length).toBeGreaterThan(90)
    const ids = new Map(pages.map(({ route }) => [`${route}.html`, idsOf(built(`${route}.html`))]))
    const dead = [...ids.keys()].flatMap((page) =>
      hrefsOf(built(page)).flatMap((href) => {
        const [name = '', anchor = ''] = href.split('#')
        const target = name === '' ? page : path.posix.join(path.posix.dirname(page), name)
        const file = target.endsWith('/') || target === '.' ? path.posix.join(target, 'index.html') : target
        if (!existsSync(path.join(site.out, file))) return [`${page}: ${href}`]
        return /^$|^code=/.test(anchor) || ids.get(file)?.has(decodeURIComponent(anchor)) ? [] : [`${page}: ${href}`]
      }),
    )
    expect(dead).toEqual([])
  })

  it('has each page as Markdown, and lists of them for programs', () => {
    const list = built('llms.txt')
    const full = built('llms-full.txt')
    expect(list).toMatch(/^# WebMQ\n\n> Message-broker topics in the browser\./)
    for (const { title, route } of pages) {
      expect(list).toContain(`- [${title}](${route}.md)`)
      expect(built(`${route}.md`)).toMatch(/^# /)
    }
    const needed = groupsOf(pages).flatMap(({ isOptional, pages: group }) => (isOptional ? [] : group))
    expect(full.split('\n\n---\n\n').map((text) => text.split('\n')[0])).toEqual(
      needed.map(({ file }) => readPage(file).split('\n')[0]),
    )
    const dead = pages.flatMap(({ route }) =>
      [...built(`${route}.md`).matchAll(/\]\(([^):\s#]+\.md)[#)]/g)].filter(
        ([, name = '']) => !existsSync(path.join(site.out, path.dirname(route), name)),
      ),
    )
    expect(dead).toEqual([])
  })

  it('begins with the promise, the picture, 60 seconds, the chart and the comparison of the README', () => {
    const home = built('index.html')
    expect(home).toContain('After every reconnect a listener has recovered, or is told gap: never neither.')
    for (const id of ['quick-start', 'fast', 'how-it-compares', 'the-promise', 'documentation']) {
      expect(home).toContain(`id="${id}"`)
    }
    expect(home.match(/<img src="[^"]+(webmq|fanout)\.[\w-]+\.svg"/g)).toHaveLength(2)
    expect(home).not.toContain('shields.io')
  })

  it('shows what happens at a cut first, and moves nothing where motion is unwanted', async () => {
    const page = await open('')
    const told = page.locator('.promise-picture .told')
    const movesBy = () => told.evaluate((element) => getComputedStyle(element).animationName)
    expect(await movesBy()).toBe('promise-told')
    await page.emulateMedia({ reducedMotion: 'reduce' })
    expect(await movesBy()).toBe('none')
    expect(await told.textContent()).toMatch(/recovered, 2 replayed[\s\S]*gap: history-expired/)
    const [words, picture] = await Promise.all(
      ['.hero h1', '.promise-picture'].map((each) => page.locator(each).boundingBox()),
    )
    expect(picture?.x).toBeGreaterThan((words?.x ?? 0) + (words?.width ?? 0) - 1)
    await page.close()
  })

  it('has the parts early in its menu, and guides of those who come from elsewhere apart', () => {
    const groups = groupsOf(pages).map(({ text, pages: group }) => ({ text, routes: group.map(({ route }) => route) }))
    expect(groups.slice(0, 3).map(({ text }) => text)).toEqual(['Begin', 'Parts', 'Your framework'])
    expect(groups[0]?.routes.length).toBeLessThan(12)
    expect(groups[1]?.routes[0]).toBe('client/state')
    const coming = groups.find(({ text }) => text === 'Coming from')?.routes
    expect(coming).toEqual(pages.map(({ route }) => route).filter((route) => route.startsWith('client/from-')))
  })

  it('has its menu of versions in the middle of the bar', async () => {
    const page = await open('client.html')
    const middleOf = async (selector: string) => {
      const box = await page.locator(selector).first().boundingBox()
      return (box?.y ?? 0) + (box?.height ?? 0) / 2
    }
    const menu = await middleOf('.VPNavBar .version-menu')
    expect(Math.abs(menu - (await middleOf('.VPNavBar .VPNavMenuLink, .VPNavBar .VPNavBarMenu a')))).toBeLessThan(3)
    await page.close()
  })

  it('is that of one version, and leads to the others', async () => {
    expect(releasesOf('## Unreleased\n\n## 0.2.1 (2027-01-02)\n\n## 0.1.0\n').map(folderOf)).toEqual(['v0.2', 'v0.1'])
    expect(built('guarantees.html')).toContain('/blob/v1.2.3/test/guarantees.test.ts')
    expect(built('../index.html')).toContain('url=v1.2/')
    const page = await open('client/react.html')
    const next = new URL('../next/', site.url).href
    await page.route(next, (route) => route.fulfill({ body: 'what comes next' }))
    await page.getByLabel('Version').selectOption('next')
    await page.waitForURL(next)
    await page.close()
  })

  it('finds what is searched for', async () => {
    const page = await open('guarantees.html')
    const input = page.locator('#localsearch-input')
    // The key works once the page's script has run.
    const opened = async () => {
      await page.keyboard.press('Control+k')
      return input.count()
    }
    await expect.poll(opened).toBe(1)
    await input.fill('savedPositions')
    await page.locator('.results a').first().click()
    await page.waitForURL((url) => !url.pathname.endsWith('guarantees.html'))
    await page.locator('main', { hasText: 'savedPositions' }).waitFor()
    await page.close()
  })

  it.each(['', 'client.html', 'adr/0054-a-stream-is-a-fold.html', 'playground.html'])(
    'is accessible and fits a phone at /%s',
    async (name) => {
      const page = await open(name)
      await expectAccessible(page)
      await page.close()
    },
  )
})

describe('the playground', () => {
  const log = (page: Page, kind: string, text: string | RegExp) =>
    page.locator(`.events [data-kind="${kind}"]`, { hasText: text }).first().waitFor()
  const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click()

  it.each(['', 'playground.html'])('recovers what was missed while the network was cut, at /%s', async (name) => {
    const page = await open(name)
    await press(page, 'Run')
    await log(page, 'log', 'message 1')
    await press(page, 'Cut the network')
    await log(page, 'state', 'reconnecting')
    await press(page, 'Restore the network')
    await log(page, 'recovered', /chat\.\*\.message: recovered, \d+ replayed/)
    await page.close()
  })

  it('has editors of one height beside each other, each with all of its code in view', async () => {
    const page = await open('playground.html', { width: 1280, height: 900 })
    const editors = page.locator('.playground .editor')
    const boxes = await editors.evaluateAll((all) =>
      all.map((each) => {
        const { top, height } = each.getBoundingClientRect()
        return { top, height, hidden: each.scrollHeight - each.clientHeight }
      }),
    )
    expect(boxes).toEqual([
      { ...boxes[0], hidden: 0 },
      { ...boxes[0], hidden: 0 },
    ])
    const tops = await page
      .locator('.controls button')
      .evaluateAll((all) => all.map((each) => each.getBoundingClientRect().top))
    expect(new Set(tops).size).toBe(1)
    expect(await editors.first().locator('.string').first().textContent()).toBe("'webmq-client'")
    expect(built('playground.html')).not.toContain('npm run docs')
    await page.close()
  })

  it('gives code colours and no other text', () => {
    for (const code of [
      `import { a } from 'b' // c\nlet d = \`e \${f} g\` /* h */ + 1_000`,
      "let = 'never ended",
      '`open ${',
      '/* open',
      '',
      readFileSync(new URL(import.meta.url), 'utf8'),
    ]) {
      expect(
        tokensOf(code)
          .map(({ text }) => text)
          .join(''),
      ).toBe(code)
    }
    expect(tokensOf("const a = '// no' // yes").flatMap(({ text, kind }) => (kind ? [[kind, text]] : []))).toEqual([
      ['word', 'const'],
      ['string', "'// no'"],
      ['comment', '// yes'],
    ])
  })

  it('tells a gap when the log was lost meanwhile, and recovers from a restart of the server', async () => {
    const page = await open('guarantees.html')
    await press(page, 'Run')
    await log(page, 'log', 'message 1')
    await press(page, 'Restart the server')
    await log(page, 'server', 'the server is back')
    await log(page, 'recovered', 'recovered')
    await press(page, 'Cut the network')
    await press(page, 'Lose the log')
    await press(page, 'Restore the network')
    await log(page, 'gap', 'chat.*.message: gap, history-expired')
    await log(page, 'log', 'load again: history-expired')
    await page.close()
  })

  it('runs each example on its page', async () => {
    const examples = PLAYGROUNDS.flatMap(({ file, example }) => (example === undefined ? [] : [{ file, example }]))
    const names = Object.keys(SHOWN).toSorted()
    expect(examples.map(({ example }) => example).toSorted()).toEqual(names)
    expect(readdirSync(path.join(ROOT, 'site/playground/examples')).toSorted()).toEqual(names)
    const plays = examples.map(async ({ file, example }) => {
      const page = await open(`${pages.find((each) => each.file === file)?.route}.html`)
      await press(page, 'Run')
      await log(page, 'log', SHOWN[example] ?? '')
      expect(await page.locator('.events [data-kind="error"]').allTextContents(), example).toEqual([])
      await page.close()
    })
    await Promise.all(plays)
  })

  it('shares code by a link, which runs nothing before a click', async () => {
    const page = await open('playground.html')
    await page.getByLabel('A page that listens').fill("console.log('shared ✓')")
    await press(page, 'Share')
    await page.getByText(/The link is/).waitFor()
    const name = page.url().slice(site.url.length)
    await page.getByLabel('A page that listens').fill(`console.log('${'x'.repeat(10_000)}')`)
    await press(page, 'Share')
    await page.getByText('The code is too long for a link.').waitFor()
    await page.close()

    const other = await open(name)
    await other.getByText('This code came with the link.').waitFor()
    expect(await other.getByLabel('A page that listens').inputValue()).toBe("console.log('shared ✓')")
    expect(await other.locator('iframe').count()).toBe(0)
    await press(other, 'Run')
    await log(other, 'log', 'shared ✓')
    await other.close()

    const example = await open('guarantees.html')
    await example.getByLabel('A page that listens').fill("console.log('changed')")
    await example.getByText('Open in the playground').click()
    await example.getByText('This code came with the link.').waitFor()
    expect(await example.getByLabel('A page that listens').inputValue()).toBe("console.log('changed')")
    await example.close()

    const cut = await open(name.slice(0, -5))
    await cut.getByText('The link has no code that can be read').waitFor()
    await cut.close()
  })

  it('gives the code no origin, no storage and no network, and ends an endless loop', async () => {
    const page = await open('playground.html')
    await page.getByLabel('A page that listens').fill(`
      console.log('origin', self.origin)
      await fetch('${site.url}').catch(({ message }) => console.log('fetch:', message))
      try { indexedDB.open('any') } catch ({ name }) { console.log('storage:', name) }
      for (;;);`)
    await press(page, 'Run')
    await log(page, 'log', 'origin null')
    await log(page, 'log', 'fetch: Failed to fetch')
    await log(page, 'log', 'storage: SecurityError')
    await press(page, 'Stop')
    await expect.poll(() => page.workers().length).toBe(0)
    await page.close()
    // The console of the browser tells of the request that the policy has stopped.
    problems.splice(0, problems.length, ...problems.filter((text) => !text.includes('Content Security Policy')))
  })

  it('says what is wrong with the code', async () => {
    const page = await open('playground.html')
    await page.getByLabel('A page that listens').fill("import { x } from 'nowhere'")
    await page.getByLabel('A page that publishes').fill('let = ;')
    await press(page, 'Run')
    await log(page, 'error', 'nowhere is not here: webmq-client, webmq-client/parts, webmq-client/stream are')
    await log(page, 'error', 'SyntaxError')
    await page.close()
  })

  it('is accessible while it runs', async () => {
    const page = await open('playground.html')
    await press(page, 'Run')
    await log(page, 'log', 'message 1')
    await press(page, 'Cut the network')
    await press(page, 'Lose the log')
    await press(page, 'Restore the network')
    await log(page, 'gap', 'history-expired')
    await expectAccessible(page)
    const shots = process.env.WEBMQ_TEST_SCREENSHOTS
    if (shots !== undefined) await page.screenshot({ path: `${shots}/playground-390.png`, fullPage: true })
    await page.close()
  })
})

it('throws nothing and asks no other host', () => {
  expect(problems).toEqual([])
  expect(foreign).toEqual([])
})

function hrefsOf(html: string): string[] {
  const all = [...html.matchAll(/<(?:a|link)\b[^>]*?\shref="([^"]*)"/g)].map(([, href = '']) => href)
  return all.filter((href) => !/^[a-z]+:/.test(href))
}

function idsOf(html: string): ReadonlySet<string> {
  return new Set([...html.matchAll(/\sid="([^"]+)"/g)].map(([, id = '']) => id))
}

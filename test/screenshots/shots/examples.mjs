// The examples: empty, where they have nothing at first, and in use.

/** Starts an example once for its shots. */
const starter = (name) => async () => {
  const { startExample } = await import('../../../scripts/lib/examples.mjs')
  return await startExample(name)
}

const startChat = starter('chat')
const startAssistant = starter('assistant')
const startAuction = starter('auction')
const startWhiteboard = starter('whiteboard')
const startWorker = starter('worker')

const TALK = [
  ['Ada', 'The new build is on the second node. Can you see the prices?'],
  ['Bob', 'Yes, all of them, and none twice.'],
  ['Ada', 'I restarted the first one meanwhile.'],
  ['Bob', 'I did not notice.'],
]

/** Two people in two windows. */
async function talk(page, url) {
  const windows = { Ada: await page.context().newPage(), Bob: page }
  for (const [name, window] of Object.entries(windows)) await window.goto(`${url}?name=${name}`)
  for (const [name, text] of TALK) {
    await windows[name].locator('input').fill(text)
    await windows[name].locator('input').press('Enter')
    await windows[name].locator('li:not([class])', { hasText: text }).waitFor()
  }
  // Those of the shots before are gone by then.
  await page.locator('p', { hasText: /^Here: (Ada, Bob|Bob, Ada)$/ }).waitFor()
}

const CURVES = [
  (t) => [120 + 480 * t, 240 + 90 * Math.sin(9 * t)],
  (t) => [360 + 110 * Math.cos(6.4 * t), 240 + 110 * Math.sin(6.4 * t)],
  (t) => [140 + 460 * t, 380 - 280 * t * t],
]

/** Draws as people do who take a new window for a new colour. */
async function draw(page, url) {
  for (const pointAt of CURVES) {
    await page.goto(url)
    const canvas = page.locator('canvas')
    const { x, y, width } = await canvas.boundingBox()
    const moveTo = async (t) => {
      const [left, top] = pointAt(t)
      await page.mouse.move(x + (left * width) / 800, y + (top * width) / 800)
    }
    await page.waitForTimeout(300)
    await moveTo(0)
    await page.mouse.down()
    for (let step = 1; step <= 60; step++) await moveTo(step / 60)
    await page.mouse.up()
    await page.waitForTimeout(300)
  }
}

/** @type {import('../main.mjs').Shot[]} */
export const shots = [
  {
    name: 'example-chat-empty',
    start: startChat,
    isKept: true,
    async show(page, { url }) {
      await page.goto(`${url}?name=Ada`)
      await page.locator('p', { hasText: 'Ada' }).first().waitFor()
    },
  },
  {
    name: 'example-chat',
    start: startChat,
    isKept: true,
    show: (page, { url }) => talk(page, url),
  },
  {
    name: 'example-assistant-empty',
    start: startAssistant,
    async show(page, { url }) {
      await page.goto(url)
      await page.locator('form').waitFor()
    },
  },
  {
    name: 'example-assistant',
    start: startAssistant,
    isKept: true,
    async show(page, { url }) {
      await page.goto(url)
      await page.locator('input').fill('What happens when I reload')
      await page.locator('button', { hasText: 'Ask' }).click()
      await page.locator('[data-active] p').waitFor()
      await page.waitForTimeout(4_000)
    },
  },
  {
    name: 'example-dashboard',
    start: starter('dashboard'),
    async show(page, { url }) {
      await page.goto(url)
      await page.locator('.price').nth(299).waitFor()
      await page.waitForTimeout(1_000)
    },
  },
  {
    name: 'example-whiteboard-empty',
    start: startWhiteboard,
    async show(page, { url }) {
      await page.goto(url)
      await page.locator('#state', { hasText: 'connected' }).waitFor()
    },
  },
  {
    name: 'example-whiteboard',
    start: startWhiteboard,
    isKept: true,
    show: (page, { url }) => draw(page, url),
  },
  {
    name: 'example-worker-empty',
    start: startWorker,
    async show(page, { url }) {
      await page.goto(url)
      await page.locator('form').waitFor()
    },
  },
  {
    name: 'example-worker',
    start: startWorker,
    isKept: true,
    async show(page, { url }) {
      await page.goto(url)
      await page.waitForTimeout(1_000)
      for (const below of ['1000', '100000', '2000000', '500000']) {
        await page.locator('input').fill(below)
        await page.locator('button').click()
      }
      await page.locator('li').nth(3).waitFor()
      await page.waitForTimeout(500)
    },
  },
  {
    name: 'example-auction-empty',
    start: startAuction,
    async show(page, { url }) {
      await page.goto(`${url}?name=Ada`)
      await page.locator('button').first().waitFor()
    },
  },
  {
    name: 'example-auction',
    start: startAuction,
    isKept: true,
    async show(page, { url }) {
      await page.goto(`${url}?name=Ada`)
      for (let count = 0; count < 3; count++) await page.locator('main > p button, main .new').first().click()
      await page.locator('article').nth(2).waitFor()
      for (const [index, euros] of [
        [0, '3'],
        [1, '5.50'],
        [0, '4.20'],
        [0, '7'],
        [2, '2'],
      ]) {
        const article = page.locator('article').nth(index)
        await article.locator('input').fill(euros)
        await article.locator('button[type=submit]').click()
        await page.waitForTimeout(400)
      }
    },
  },
]

// Visits to the app of docs/first-app.md.
import assert from 'node:assert/strict'
import { findChromium, startChromium } from '../../scripts/lib/chromium.mjs'

const LIMIT_MS = 60_000
/** Of the list in the page. */
const SHOWN = 50

/** Logs in, also with a wrong password, and exchanges a message. */
export async function visitDev(url) {
  await withBrowser(async (open) => {
    const ada = await open(url)
    await logIn(ada, 'ada', 'wrong')
    await ada.getByText('Wrong name or password').waitFor()
    await logIn(ada, 'ada', 'lovelace')
    const bob = await open(url)
    await logIn(bob, 'bob', 'builder')
    await write(ada, 'hello')
    await bob.getByText('ada: hello').waitFor()
  })
}

/** History after a reload, what was missed, restarts of both nodes, new tokens, the end of the session. */
export async function visitBuilt(url, restartNode) {
  await withBrowser(async (open) => {
    const [ada, bob] = [await open(url), await open(url)]
    await logIn(ada, 'ada', 'lovelace')
    await logIn(bob, 'bob', 'builder')
    for (let index = 0; index < SHOWN + 10; index++) await write(ada, `first ${index}`)
    await bob.getByText(`first ${SHOWN + 9}`).waitFor()
    await bob.reload()
    await bob.getByText(`first ${SHOWN + 9}`).waitFor()
    assert.deepEqual(await linesOf(bob), numbered('ada: first', 10, SHOWN + 10))

    await bob.context().setOffline(true)
    await bob.getByText('No connection').waitFor()
    await write(bob, 'from the train')
    for (let index = 0; index < 5; index++) await write(ada, `missed ${index}`)
    await bob.context().setOffline(false)
    await ada.getByText('bob: from the train').waitFor()
    await bob.getByText('missed 4').waitFor()
    assert.deepEqual(
      (await linesOf(bob)).filter((line) => line.includes('missed')),
      numbered('ada: missed', 0, 5),
    )

    await record(bob)
    const count = await whileWriting(ada, 'restart', async () => {
      for (const index of [0, 1]) await restartNode(index)
    })
    await bob
      .getByText(`restart ${count - 1}`, { exact: false })
      .last()
      .waitFor()
    assert.deepEqual(await bob.evaluate('seen'), numbered('ada: restart', 0, count))

    // The connection goes on with the next token, until there is none.
    await ada.waitForRequest(/\/token$/)
    const tab = await ada.context().newPage()
    await tab.goto(url)
    await tab.getByText('Log out').click()
    await tab.getByText('Log in').waitFor()
    await ada.getByText('Log in').waitFor()
    await logIn(ada, 'ada', 'lovelace')
    await write(ada, 'again')
    await bob.getByText('ada: again').waitFor()
  })
}

async function withBrowser(visit) {
  const browser = await startChromium(await findChromium())
  try {
    await visit(async (url) => {
      const context = await browser.newContext()
      const page = await context.newPage()
      page.setDefaultTimeout(LIMIT_MS)
      await page.goto(url)
      return page
    })
  } finally {
    await browser.close()
  }
}

async function logIn(page, user, password) {
  await page.getByPlaceholder('Name').fill(user)
  await page.getByPlaceholder('Password').fill(password)
  await page.getByRole('button').click()
}

/** React empties the field when it has taken the text. */
async function write(page, text) {
  const field = page.getByPlaceholder('Message')
  await field.fill(text)
  await field.press('Enter')
  await page.waitForFunction("document.querySelector('[name=text]').value === ''")
}

async function whileWriting(page, text, work) {
  let isOver = false
  const working = work().finally(() => {
    isOver = true
  })
  let count = 0
  while (!isOver) await write(page, `${text} ${count++}`)
  await working
  return count
}

/** Keeps what the list shows anew, in its order: it has only the last messages. */
async function record(page) {
  await page.evaluate(`
    globalThis.seen = []
    new MutationObserver((changes) => {
      for (const { addedNodes } of changes) for (const node of addedNodes) seen.push(node.textContent.trim())
    }).observe(document.querySelector('[role=log] > div'), { childList: true })`)
}

async function linesOf(page) {
  return (await page.locator('[role=log] p').allTextContents()).map((line) => line.trim())
}

function numbered(text, from, to) {
  return Array.from({ length: to - from }, (_, index) => `${text} ${from + index}`)
}

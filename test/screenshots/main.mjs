// `npm run screenshots`: pictures of the pages, at 1280 and 390 px, light and dark, in .cache/screenshots.
// `-- --only admin` makes those whose names begin so, and may come more than once; `-- --out DIR` chooses the folder;
// `-- --no-build` takes the packages as they are.
//
// The shots come from the modules in test/screenshots/shots: a module exports `shots`, a list of {@link Shot}.
import { mkdirSync, readdirSync } from 'node:fs'
import path from 'node:path'
import { parseArgs } from 'node:util'
import { build } from '../../scripts/lib/build.mjs'
import { findChromium, startChromium } from '../../scripts/lib/chromium.mjs'
import { print, ROOT, runScript, StepError, step } from '../../scripts/lib/steps.mjs'

/**
 * A page to take pictures of. `T` is what `start` resolves to.
 * @template {{ close?: () => Promise<void> }} T
 * @typedef {object} Shot
 * @property {string} name In kebab case, unique. Files are named after it: `admin-login-1280-light.png`.
 * @property {() => Promise<T>} start Starts what the page needs, on free ports. Shots next to each other with the same
 *   function share what it started; `close` is called after the last of them.
 * @property {(page: import('playwright-core').Page, started: T, look: Look) => Promise<unknown>} show Opens the page in
 *   a new context, and waits until it is worth a picture. An error of the page fails the shot.
 * @property {boolean} [isKept] `show` is called once, and its page gets all widths and schemes in turn: for a page that
 *   takes time to fill. By default, each look has a page of its own.
 * @property {boolean} [isWhole] The whole page, however long; `true` by default. `false`: what the window shows.
 * @property {readonly number[]} [widths] Of the window, in px; {@link WIDTHS} by default.
 */

/** @typedef {{ width: number, scheme: 'light' | 'dark' }} Look */

const WIDTHS = [1280, 390]
const SCHEMES = ['light', 'dark']
const MODULES = path.join(ROOT, 'test', 'screenshots', 'shots')
/** Of one step of a shot. */
const TIMEOUT_MS = 30_000
/** A page that has another size draws anew. */
const SETTLE_MS = 500

await runScript(async () => {
  const { out, only, isBuilt } = readArguments()
  if (!isBuilt) await build()
  const shots = (await allShots()).filter(
    ({ name }) => only.length === 0 || only.some((begin) => name.startsWith(begin)),
  )
  if (shots.length === 0) throw new StepError(`No shot has a name that begins with ${only.join(' or ')}.`)
  mkdirSync(out, { recursive: true })
  const browser = await startChromium(await findChromium())
  try {
    for (const group of groupsOf(shots)) await takeGroup(browser, group, out)
  } finally {
    await browser.close()
  }
  print(`The pictures are in ${path.relative(process.cwd(), out) || '.'}.`)
})

function readArguments() {
  const { values } = parseArgs({
    options: {
      out: { type: 'string', default: path.join(ROOT, '.cache', 'screenshots') },
      only: { type: 'string', multiple: true, default: [] },
      'no-build': { type: 'boolean', default: false },
    },
  })
  return { out: path.resolve(values.out), only: values.only, isBuilt: values['no-build'] }
}

/** Of all modules, which are imported now: what they import may have been built just before. */
async function allShots() {
  const files = readdirSync(MODULES).filter((file) => file.endsWith('.mjs'))
  const modules = await Promise.all(files.map((file) => import(`./shots/${file}`)))
  return modules.flatMap(({ shots = [] }) => shots)
}

function groupsOf(shots) {
  const groups = []
  for (const shot of shots) {
    if (groups.at(-1)?.[0].start === shot.start) groups.at(-1).push(shot)
    else groups.push([shot])
  }
  return groups
}

async function takeGroup(browser, group, out) {
  const started = await group[0].start()
  try {
    for (const shot of group) await step(`Taking ${shot.name}`, () => take(browser, shot, started, out))
  } finally {
    await started?.close?.()
  }
}

async function take(browser, { name, show, isKept = false, isWhole = true, widths = WIDTHS }, started, out) {
  const looks = widths.flatMap((width) => SCHEMES.map((scheme) => ({ width, scheme })))
  const problems = []
  let page
  for (const look of looks) {
    if (page === undefined) {
      page = await openPage(browser, look, problems)
      await show(page, started, look)
    } else {
      await page.setViewportSize(viewportOf(look))
      await page.emulateMedia({ colorScheme: look.scheme })
      await page.waitForTimeout(SETTLE_MS)
    }
    await page.screenshot({ path: path.join(out, `${name}-${look.width}-${look.scheme}.png`), fullPage: isWhole })
    if (!isKept || look === looks.at(-1)) {
      await page.context().close()
      page = undefined
    }
  }
  if (problems.length > 0) throw new StepError(`The page of ${name} threw: ${problems.join('; ')}`)
}

async function openPage(browser, look, problems) {
  const context = await browser.newContext({
    viewport: viewportOf(look),
    colorScheme: look.scheme,
    reducedMotion: 'reduce',
  })
  const page = await context.newPage()
  page.setDefaultTimeout(TIMEOUT_MS)
  page.on('pageerror', (error) => problems.push(error.message))
  return page
}

function viewportOf({ width }) {
  return { width, height: width < 600 ? 844 : 800 }
}

// The site, and reports of the bench.
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { must, ROOT } from '../../../scripts/lib/steps.mjs'

const TYPES = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml' }
const VITEPRESS = path.join(ROOT, 'site', 'node_modules', 'vitepress', 'bin', 'vitepress.js')
const BENCH = path.join(ROOT, 'packages', 'bench', 'benchmark.js')

async function startSite() {
  const folder = mkdtempSync(path.join(tmpdir(), 'webmq-site-'))
  const env = { ...process.env, WEBMQ_DOCS_OUT: path.join(folder, 'next'), NODE_ENV: 'production' }
  const args = [VITEPRESS, 'build', path.join(ROOT, 'site')]
  await must('The site could not be built.', process.execPath, args, { log: 'screenshots-site', env })
  const server = createServer((request, response) => {
    const name = decodeURIComponent(new URL(request.url ?? '/', 'http://host').pathname)
    const file = path.join(folder, name.endsWith('/') ? `${name}index.html` : name)
    const isThere = existsSync(file) && statSync(file).isFile()
    response.writeHead(isThere ? 200 : 404, { 'content-type': TYPES[path.extname(file)] ?? 'text/plain' })
    response.end(isThere ? readFileSync(file) : '')
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return {
    url: `http://127.0.0.1:${server.address().port}/next/`,
    close: async () => {
      server.close()
      server.closeAllConnections()
      rmSync(folder, { recursive: true })
    },
  }
}

/** A short run of the bench. */
const reporter = (name, args) => async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'webmq-report-'))
  const file = path.join(folder, 'report.html')
  await must('The bench has failed.', process.execPath, [BENCH, ...args, '--html', file], {
    log: `screenshots-${name}`,
  })
  return { url: pathToFileURL(file).href, close: async () => rmSync(folder, { recursive: true }) }
}

const REPORTS = {
  clients: ['--clients', '50', '--duration', '12'],
  fanout: [
    '--scenario',
    'fanout',
    '--target',
    'webmq-native,ws',
    '--tiers',
    '10,100,500',
    '--duration',
    '5',
    '--repeat',
    '1',
  ],
}

async function openPage(page, address) {
  await page.goto(address)
  await page.locator('h1').first().waitFor()
}

/** @type {import('../main.mjs').Shot[]} */
export const shots = [
  { name: 'site-home', start: startSite, isWhole: false, show: (page, { url }) => openPage(page, url) },
  { name: 'site-home-whole', start: startSite, show: (page, { url }) => openPage(page, url) },
  {
    name: 'site-guide',
    start: startSite,
    isWhole: false,
    show: (page, { url }) => openPage(page, `${url}client/state.html`),
  },
  {
    name: 'site-playground',
    start: startSite,
    async show(page, { url }) {
      await openPage(page, `${url}playground.html`)
      const press = (name) => page.getByRole('button', { name, exact: true }).click()
      const log = (kind) => page.locator(`.events [data-kind="${kind}"]`).first().waitFor()
      await press('Run')
      await log('log')
      await press('Cut the network')
      await page.waitForTimeout(1_500)
      await press('Restore the network')
      await log('recovered')
    },
  },
  ...Object.entries(REPORTS).map(([name, args]) => ({
    name: `bench-${name}`,
    start: reporter(name, args),
    show: (page, { url }) => openPage(page, url),
  })),
]

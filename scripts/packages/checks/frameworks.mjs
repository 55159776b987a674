import { mkdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { build } from 'esbuild'
import { preview } from 'vite'
import { freePort } from 'webmq-services'
import { findChromium, startChromium } from '../../lib/chromium.mjs'
import { ROOT } from '../../lib/steps.mjs'
import { FRAMEWORKS, SESSION_SECRET } from './framework-apps.mjs'
import { startServer } from './server.mjs'

const SECRET = 'a secret of 32 bytes or more, as text'
const API_KEY = 'key-of-the-examples-in-the-docs'
const HISTORY = ['--history', 'room.#=1000,1h']
/** A build on two busy cores; it takes a quarter of that here. */
const LIMIT_MS = 400_000

const documentOf = (name) => readFileSync(path.join(ROOT, 'docs', 'with', name), 'utf8')

/**
 * The files of a page: every block whose first line is a comment with a path, of one section or of the whole page.
 * @returns {Record<string, string>}
 */
export function filesOf(document, heading) {
  const page = documentOf(document)
  const section = heading === undefined ? page : page.split(/^## /m).find((text) => text.startsWith(`${heading}\n`))
  const blocks = section?.matchAll(/^```\w+\n((?:\/\/|#|<!--) (\S+\.\w+)(?: -->)?\n[\s\S]*?\n)```$/gm) ?? []
  const files = Object.fromEntries([...blocks].map(([, code, file]) => [file, code]))
  if (Object.keys(files).length === 0) throw new Error(`docs/with/${document} has no file for ${heading}`)
  return files
}

/** The page of docs/with/README.md, for an application without a page of its own: it shows what it hears. */
async function writePlainPage(project) {
  const [, code] = documentOf('README.md').match(/^## The page\n\n```ts\n([\s\S]*?)```$/m) ?? []
  if (code === undefined) throw new Error('docs/with/README.md has no page')
  const own = `const show = ({ text }) => document.body.append(text)
const fetchMessages = async () => { document.title = 'loaded' }`
  const stdin = { contents: `${own}\n${code}`, resolveDir: project.folder, loader: 'ts' }
  const { outputFiles } = await build({ stdin, bundle: true, format: 'esm', write: false })
  const html = `<!doctype html><html data-waits><body></body><script type="module">${outputFiles[0].text}</script></html>`
  project.write({ 'page.html': html })
}

/** One site as behind nginx: `/ws` is WebMQ's, everything else the application's. */
async function startSite(folder, application, server) {
  mkdirSync(path.join(folder, 'empty'), { recursive: true })
  const proxy = { '/ws': { target: server.http, ws: true }, '^/': { target: application } }
  const site = await preview({
    configFile: false,
    root: folder,
    logLevel: 'silent',
    build: { outDir: 'empty' },
    preview: { host: '127.0.0.1', port: await freePort(), proxy },
  })
  return { url: site.resolvedUrls.local[0].replace(/\/$/, ''), close: () => site.close() }
}

/** A page of a user who is logged in shows what the application's route publishes; a stranger gets no token. */
async function expectLive(url, { body = (text) => JSON.stringify({ text }), type = 'application/json' }) {
  const { status } = await fetch(`${url}/token`, { redirect: 'manual' })
  if (![302, 401, 403].includes(status)) throw new Error(`a stranger who asks for a token gets ${status}`)
  const browser = await startChromium(await findChromium())
  const said = []
  try {
    const page = await browser.newPage()
    page.on('console', (message) => said.push(message.text()))
    page.on('pageerror', (error) => said.push(String(error)))
    await page.goto(`${url}/login?user=ada`)
    await page.goto(`${url}/rooms/42`)
    // The second comes to a page that listens.
    for (const text of ['hello', 'again']) {
      await page.waitForFunction(() => !document.documentElement.dataset.waits || document.title === 'loaded')
      const answer = await page.evaluate(
        async ({ body, type }) => {
          const csrf = document.cookie.match(/csrftoken=(\w+)/)?.[1] ?? ''
          const headers = { 'content-type': type, 'x-csrftoken': csrf }
          const response = await fetch('/rooms/42/messages', { method: 'POST', headers, body })
          return `${response.status} ${await response.text()}`
        },
        { body: body(text), type },
      )
      if (!answer.startsWith('201')) throw new Error(`the route that publishes answers ${answer.slice(0, 500)}`)
      await page.getByText(text).waitFor()
    }
  } catch (error) {
    error.message += `\n${said.join('\n')}`
    throw error
  } finally {
    await browser.close()
  }
}

/**
 * Makes a project with the files of the docs and of an application around them, builds and starts it, and looks.
 * @param {import('./framework-apps.mjs').Framework} framework
 */
export async function tryFramework({ newProject, newestNode, serverProject }, framework) {
  const times = []
  let startedAtMs = performance.now()
  const lap = (what) => {
    times.push(`${what} ${((performance.now() - startedAtMs) / 1_000).toFixed(1)} s`)
    startedAtMs = performance.now()
  }
  const { name, packages, isPlain } = framework
  const project = await newProject(`with-${name.toLowerCase()}`, { node: newestNode })
  serverProject.write({ 'jwt.secret': SECRET, 'api.key': API_KEY })
  const secrets = ['--jwt-secret-file', 'jwt.secret', '--api-key-file', 'api.key']
  const server = await startServer(serverProject, ['npx', 'webmq-server'], [...HISTORY, ...secrets])
  const port = await freePort()
  Object.assign(project.env, {
    NEXT_TELEMETRY_DISABLED: '1',
    PORT: String(port),
    HOST: '127.0.0.1',
    SESSION_SECRET,
    WEBMQ_URL: server.http,
    WEBMQ_JWT_SECRET: SECRET,
    WEBMQ_API_KEY: API_KEY,
  })
  const closing = [server.stop]
  try {
    await project.run('npm', 'install', 'webmq-server', 'webmq-client', 'jose', ...packages)
    lap('installed in')
    const { 'webmq.ts': module } = filesOf(framework.document)
    project.write({ ...filesOf(framework.document, framework.heading), [framework.module]: module, ...framework.files })
    if (isPlain) await writePlainPage(project)
    for (const command of framework.build) await project.run(...command)
    lap('built in')
    const application = await project.start(framework.ready, ...framework.start)
    closing.unshift(application.stop)
    const site = await startSite(path.join(project.folder, '.site'), `http://127.0.0.1:${port}`, server)
    closing.unshift(site.close)
    await expectLive(site.url, framework).catch((error) => {
      error.message += `\n${application.output().slice(-1_500)}`
      throw error
    })
    lap('tried in')
    return times.join(', ')
  } finally {
    for (const close of closing) await close()
  }
}

/** @type {import('../check.mjs').Check[]} */
export const frameworkChecks = FRAMEWORKS.map((framework) => ({
  name: `docs/with: ${framework.name} gives tokens, publishes and has a page`,
  limitMs: LIMIT_MS,
  run: (context) => tryFramework(context, framework),
}))

import { mkdirSync } from 'node:fs'
import path from 'node:path'
import { findChromium, startChromium } from '../../../scripts/lib/chromium.mjs'
import { run } from '../../../scripts/lib/steps.mjs'
import { readerOf } from '../../docs/readers.mjs'
import { Missing } from '../check.mjs'
import { FRAMEWORKS, SESSION_SECRET } from './framework-apps.mjs'
import { PYTHON_FRAMEWORKS } from './python-apps.mjs'
import { startServer } from './server.mjs'
import { SERVER_FRAMEWORKS } from './server-apps.mjs'

const { exampleOf, examplesOf } = readerOf('test/packages/checks/frameworks.mjs')
const SECRET = 'a secret of 32 bytes or more, as text'
const API_KEY = 'key-of-the-examples-in-the-docs'
const OPTIONS = ['--history', 'room.#=1000,1h', '--jwt-secret-file', 'jwt.secret', '--api-key-file', 'api.key']
const WEBMQ = ['webmq-server', 'webmq-client', 'jose']
/** A build on two busy cores; it takes a quarter of that here. */
const LIMIT_MS = 400_000

/** The page of an application without a page of its own: it shows what it hears. */
const PLAIN_PAGE = `const show = ({ text }) => document.body.append(text)
const fetchMessages = async () => { document.title = 'loaded' }
${exampleOf('with/README.md', 'page').code}`

/**
 * The files of a block: each begins with a comment that has its path.
 * @returns {Record<string, string>}
 */
function filesOf({ page, name, code }) {
  const parts = code.split(/^(?:\/\/|#|<!--) (\S+\.\w+)(?: -->)?\n/m)
  if (parts[0] !== '' || parts.length < 3) throw new Error(`${page}: ${name} has no path`)
  return Object.fromEntries(parts.flatMap((part, index) => (index % 2 === 1 ? [[part, parts[index + 1]]] : [])))
}

/** What the docs have for an application: path, text. */
function documented({ page, blocks, folder = '', modules = {} }) {
  const files = {}
  for (const block of examplesOf(page).filter(({ name }) => blocks.some((each) => name.split('-')[0] === each))) {
    for (const [file, text] of Object.entries(filesOf(block))) {
      files[path.join(folder, modules[file] ?? file)] = file.endsWith('.php') ? `<?php\n${text}` : text
    }
  }
  return files
}

/** Programs of the system that a framework needs. On Debian they are installed. */
async function findPrograms(project, { command: [program, ...args], packages }) {
  const isThere = async () => (await run(program, args, { log: program })).exitCode === 0
  if (!(await isThere())) {
    const { canInstallPackages, installPackage } = await import('webmq-services')
    if (canInstallPackages()) for (const name of packages) await installPackage(name)
    if (!(await isThere())) throw new Missing(`${packages.join(', ')} of Debian`)
  }
  project.env.PATH += `${path.delimiter}${process.env.PATH}`
}

async function writePlainPage(project) {
  const { build } = await import('esbuild')
  const stdin = { contents: PLAIN_PAGE, resolveDir: project.folder, loader: 'ts' }
  const { outputFiles } = await build({ stdin, bundle: true, format: 'esm', write: false })
  const html = `<!doctype html><html data-waits><body></body><script type="module">${outputFiles[0].text}</script></html>`
  project.write({ 'page.html': html })
}

/** One site as behind nginx: `/ws` is WebMQ's, everything else the application's. */
async function startSite(folder, application, server) {
  const [{ preview }, { freePort }] = await Promise.all([import('vite'), import('webmq-services')])
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
async function expectLive(url, { takesForms }) {
  const type = takesForms ? 'application/x-www-form-urlencoded' : 'application/json'
  const bodyOf = (text) => (takesForms ? `text=${text}` : JSON.stringify({ text }))
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
      await page.waitForFunction(() => !('waits' in document.documentElement.dataset) || document.title === 'loaded')
      const answer = await page.evaluate(
        async ({ body, type }) => {
          // Django's is in a cookie.
          const ofDjango = document.cookie.match(/csrftoken=(\w+)/)?.[1] ?? ''
          const ofOthers = document.querySelector('meta[name=csrf-token]')?.content ?? ''
          const headers = { 'content-type': type, 'x-csrftoken': ofDjango, 'x-csrf-token': ofOthers }
          const response = await fetch('/rooms/42/messages', { method: 'POST', headers, body })
          return `${response.status} ${await response.text()}`
        },
        { body: bodyOf(text), type },
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
async function tryFramework({ newProject, newestNode, serverProject }, framework, files) {
  const times = []
  let startedAtMs = performance.now()
  const lap = (what) => {
    times.push(`${what} ${((performance.now() - startedAtMs) / 1_000).toFixed(1)} s`)
    startedAtMs = performance.now()
  }
  const project = await newProject(`with-${framework.name.split(' ')[0].toLowerCase()}`, { node: newestNode })
  serverProject.write({ 'jwt.secret': SECRET, 'api.key': API_KEY })
  const server = await startServer(serverProject, ['npx', 'webmq-server'], OPTIONS)
  const closing = [server.stop]
  try {
    const { freePort } = await import('webmq-services')
    const port = await freePort()
    Object.assign(project.env, framework.env, {
      PORT: String(port),
      HOST: '127.0.0.1',
      SESSION_SECRET,
      WEBMQ_URL: server.http,
      WEBMQ_JWT_SECRET: SECRET,
      WEBMQ_API_KEY: API_KEY,
    })
    await project.run('npm', 'install', ...WEBMQ, ...(framework.packages ?? []))
    await framework.install?.(project)
    if (framework.needs) await findPrograms(project, framework.needs)
    lap('installed in')
    project.write({ ...files, ...framework.files })
    if (framework.isPlain) await writePlainPage(project)
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
export const frameworkChecks = [...FRAMEWORKS, ...PYTHON_FRAMEWORKS, ...SERVER_FRAMEWORKS].map((framework) => {
  const files = documented(framework)
  return {
    name: `docs/with: ${framework.name} gives tokens, publishes and has a page`,
    limitMs: LIMIT_MS,
    run: (context) => tryFramework(context, framework, files),
  }
})

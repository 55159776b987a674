// The app of docs/first-app.md: its files, with a login that is answered here.
import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { build, preview } from 'vite'
import { ROOT } from '../../../scripts/lib/steps.mjs'
import { blocksOf } from '../../docs/page-blocks.mjs'
import { signedToken } from '../signed-token.mjs'

/** Where its imports are installed, and nothing is committed. */
const APP = path.join(ROOT, 'examples', 'chat', 'dist', 'first-app')
const FILE_NAME = /^(?:\/\/|\/\*) (src\/[\w.]+)/
const GRANTS = [{ keys: ['chat.#'], allow: ['listen', 'publish'] }]
const SECRET = 'a secret of 32 bytes or more, as HS256 wants it'
/** What `npm create vite` makes, and the page keeps. */
const OF_VITE = {
  'index.html': `<!doctype html><html lang="en"><head><meta charset="UTF-8" />
<meta name="viewport" content="width=device-width, initial-scale=1.0" /><link rel="icon" href="data:," /><title>chat</title>
</head><body><div id="root"></div><script type="module" src="/src/main.tsx"></script></body></html>`,
  'src/main.tsx': `import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import './index.css'
import App from './App.tsx'
createRoot(document.getElementById('root')!).render(<StrictMode><App /></StrictMode>)`,
}

async function startApp() {
  const blocks = blocksOf('docs/first-app.md').map(({ code }) => [FILE_NAME.exec(code)?.[1], code])
  const files = [...Object.entries(OF_VITE), ...blocks.filter(([file]) => file !== undefined)]
  mkdirSync(path.join(APP, 'src'), { recursive: true })
  for (const [file, text] of files) writeFileSync(path.join(APP, file), text)
  await build({ root: APP, configFile: false, logLevel: 'error' })

  const { createServer } = await import('webmq-server')
  const { freePort } = await import('webmq-services')
  const history = ['chat.#=1000,1d']
  const server = createServer({ port: 0, jwt: { secret: SECRET }, history, meta: ['chat.#'], logLevel: 'silent' })
  const { url } = await server.start()
  const proxy = { '/ws': { target: url.replace(/^ws/, 'http').replace(/\/ws$/, ''), ws: true } }
  const port = await freePort()
  const page = await preview({ root: APP, configFile: false, preview: { host: '127.0.0.1', port, proxy } })
  return {
    url: page.resolvedUrls.local[0],
    async close() {
      await page.close()
      await server.stop({ drainMs: 0 })
    },
  }
}

/** Answers what the page's backend does. @param user Nobody is logged in without one. */
async function openAs(page, url, user) {
  await page.unrouteAll()
  await page.route('**/token', (route) =>
    route.fulfill(
      user === undefined ? { status: 401 } : { contentType: 'text/plain', body: signedToken(user, GRANTS, SECRET) },
    ),
  )
  await page.goto(url)
}

const TALK = [
  ['ada', 'Hello! The second node is up.'],
  ['bob', 'I see. Did you restart the first one?'],
  ['ada', 'Just now, while you wrote.'],
]

/** @type {import('../main.mjs').Shot[]} */
export const shots = [
  {
    name: 'tutorial-login',
    start: startApp,
    async show(page, { url }) {
      await openAs(page, url)
      await page.getByPlaceholder('Name').waitFor()
    },
  },
  {
    name: 'tutorial-chat',
    start: startApp,
    isKept: true,
    async show(page, { url }) {
      for (const [user, text] of TALK) {
        await openAs(page, url, user)
        await page.getByPlaceholder('Message').fill(text)
        await page.getByPlaceholder('Message').press('Enter')
        await page.getByText(`${user}: ${text}`).waitFor()
      }
    },
  },
]

// The demo page, and the devtools in a page.
import { build } from 'esbuild'
import { ROOT } from '../../../scripts/lib/steps.mjs'

const APP = `
  import { listen, setup } from 'webmq-client'
  import { devtools } from 'webmq-client/devtools'
  setup({ url: '/ws' })
  devtools()
  for (const pattern of ['chat.*.message', 'prices.#']) listen(pattern, () => undefined)
`

const TALK = [
  ['Ada', 'Can you see the prices?'],
  ['Bob', 'All of them, and none twice.'],
  ['Ada', 'I have just cut my network.'],
  ['Bob', 'I did not notice.'],
]

const PAGE = `
  <meta name="color-scheme" content="light dark">
  <title>App</title>
  <style>
    body { max-width: 30rem; margin: 3rem; font: 1.125rem/1.6 system-ui, sans-serif }
    p { margin: 0.75rem 0; padding: 0.5rem 1rem; border-radius: 0.75rem; background: light-dark(#eef1f5, #1b2430) }
  </style>
  <h1>Lobby</h1>
  ${TALK.map(([name, text]) => `<p><b>${name}:</b> ${text}</p>`).join('')}`

async function startServer() {
  const { createServer } = await import('webmq-server')
  const server = createServer({ port: 0, demo: true, logLevel: 'silent' })
  const { url } = await server.start()
  return {
    server,
    url: url.replace(/^ws/, 'http').replace(/\/ws$/, '/'),
    close: () => server.stop({ drainMs: 0 }),
  }
}

async function publishSome(server) {
  for (const [index, [from, text]] of TALK.entries()) {
    await server.publish('chat.42.message', { from, text })
    await server.publish(`prices.${index}`, 100 + index)
  }
}

/** @type {import('../main.mjs').Shot[]} */
export const shots = [
  {
    name: 'demo',
    start: startServer,
    async show(page, { server, url }) {
      await page.goto(url)
      await page.locator('.patterns li[data-state=active]').nth(1).waitFor()
      await publishSome(server)
      const publish = page.locator('.publish').first()
      await publish.locator('[name=rate]').selectOption('10')
      await publish.locator('button').click()
      await page.waitForTimeout(5_000)
    },
  },
  {
    name: 'devtools',
    start: startServer,
    isWhole: false,
    async show(page, { server, url }) {
      const { outputFiles } = await build({
        stdin: { contents: APP, resolveDir: ROOT },
        bundle: true,
        write: false,
        format: 'esm',
        logLevel: 'error',
      })
      // Any answer of the server makes a page of its origin.
      await page.goto(`${url}health`)
      await page.setContent(PAGE)
      await page.addScriptTag({ type: 'module', content: outputFiles[0].text })
      await page.locator('summary').click()
      await page.locator('details[data-state=connected]').waitFor()
      await page.waitForTimeout(500)
      await publishSome(server)
      await page.waitForTimeout(1_500)
    },
  },
]

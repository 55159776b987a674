// What a page spends on messages: CPU time of its main thread per message, and the times of its frames, with WebMQ's
// client (plain, and with `latest`) beside a bare `onmessage` with JSON.parse, Socket.IO, Centrifuge and AnyCable. All do
// the same work with the same messages: 100 keys, payloads of 200 bytes, one frame each.
// Usage: node browser/chromium.mjs [messages per second] [seconds] [client …]
import { createServer as createHttpServer } from 'node:http'
import process from 'node:process'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { chromium } from 'playwright-core'
import { findChromium } from '../../../scripts/lib/chromium.mjs'
import { messageOf, startServer } from './peers.mjs'

const PAGE = fileURLToPath(new URL('page.mjs', import.meta.url))

const [perSecond = '10000', seconds = '5', ...names] = process.argv.slice(2)
/** Messages are sent in ticks: timers are no finer. */
const TICK_MS = 10
const CLIENTS = ['bare', 'webmq', 'webmq latest', 'webmq latest batch', 'socket.io', 'centrifuge', 'anycable']

async function startSite() {
  const { outputFiles } = await build({
    entryPoints: [PAGE],
    bundle: true,
    minify: true,
    format: 'esm',
    target: 'es2022',
    write: false,
  })
  const site = createHttpServer((request, response) => {
    const isScript = request.url === '/page.js'
    response.setHeader('content-type', isScript ? 'text/javascript' : 'text/html')
    response.end(isScript ? outputFiles[0].text : '<!doctype html><body><script type="module" src="/page.js"></script>')
  })
  await new Promise((resolve) => site.listen(0, '127.0.0.1', resolve))
  return site
}

/** Seconds of CPU time that the main thread of the page has spent. */
async function cpuSeconds(devtools) {
  const { metrics } = await devtools.send('Performance.getMetrics')
  return metrics.find(({ name }) => name === 'TaskDuration').value
}

async function measure(browser, siteUrl, name) {
  const server = await startServer(name)
  const page = await browser.newPage()
  await page.goto(siteUrl)
  await page.waitForFunction(() => 'bench' in globalThis)
  await page.evaluate(([client, url]) => bench.connect(client, url), [name, server.url])
  const devtools = await page.context().newCDPSession(page)
  // Its thread's CPU time, not the time that passed: other processes run beside it.
  await devtools.send('Performance.enable', { timeDomain: 'threadTicks' })
  const perTick = (Number(perSecond) * TICK_MS) / 1_000
  let seq = 0
  const tick = async () => {
    await server.send(Array.from({ length: perTick }, () => messageOf(++seq)))
  }
  const play = async (ms) => {
    const startMs = performance.now()
    for (let count = 1; count * TICK_MS <= ms; count++) {
      await tick()
      await sleep(Math.max(0, startMs + count * TICK_MS - performance.now()))
    }
    await page.waitForFunction((last) => bench.result().lastSeq >= last, seq, { polling: 50, timeout: 30_000 })
    return performance.now() - startMs
  }
  // The first second compiles and grows what it needs.
  await play(1_000)
  const before = { cpu: await cpuSeconds(devtools), ...(await page.evaluate(() => bench.result())), seq }
  await page.evaluate(() => bench.watch())
  const elapsedMs = await play(Number(seconds) * 1_000)
  const cpu = (await cpuSeconds(devtools)) - before.cpu
  const after = await page.evaluate(() => bench.result())
  await page.close()
  await server.stop()
  const times = after.frames.slice(1).map((time, index) => time - after.frames[index])
  times.sort((a, b) => a - b)
  const at = (share) => times[Math.floor(times.length * share)]?.toFixed(1)
  return {
    client: name,
    'messages/s': Math.round(((seq - before.seq) / elapsedMs) * 1_000),
    'us/message': ((cpu * 1e6) / (seq - before.seq)).toFixed(1),
    handled: after.handledCount - before.handledCount,
    frames: times.length,
    'frame p50 ms': at(0.5),
    'frame p95 ms': at(0.95),
  }
}

const site = await startSite()
const browser = await chromium.launch({ executablePath: await findChromium(), args: ['--no-sandbox', '--disable-gpu'] })
try {
  const rows = []
  for (const name of names.length > 0 ? names : CLIENTS) {
    rows.push(await measure(browser, `http://127.0.0.1:${site.address().port}/`, name))
  }
  console.table(rows)
} finally {
  await browser.close()
  site.close()
}
process.exit(0)

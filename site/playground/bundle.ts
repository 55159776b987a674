import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import type { Plugin } from 'vite'

const NAME = 'virtual:playground-frame'
const file = (name: string) => fileURLToPath(new URL(name, import.meta.url))
const client = (name: string) => file(`../../packages/client/src/${name}`)

/** Modules of the client for one pane: each pane has its own, as each page has. */
const modules = () => bundled(file('./modules.ts'), 'webmq')

/** Gives `virtual:playground-frame`: the page of the sandbox, complete in one text. */
export function playgroundFrame(): Plugin {
  return {
    name: 'webmq:playground',
    resolveId: (id) => (id === NAME ? `\0${NAME}` : undefined),
    load: async (id) => {
      if (id !== `\0${NAME}`) return undefined
      const worker = `const MODULES=${JSON.stringify(await modules())};${await bundled(file('./worker.ts'))}`
      return `export default ${JSON.stringify(frameOf(worker))}`
    },
  }
}

async function bundled(entry: string, globalName?: string): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [entry],
    bundle: true,
    write: false,
    minify: true,
    format: 'iife',
    target: 'es2022',
    ...(globalName !== undefined && { globalName }),
    // From the sources: no package need be compiled before.
    alias: {
      'webmq-client': client('development.ts'),
      'webmq-client/parts': client('parts/index.ts'),
      'webmq-client/protocol': client('protocol/index.ts'),
      'webmq-client/stream': client('parts/stream/index.ts'),
      'webmq-client/testing': client('dev/testing/index.ts'),
    },
  })
  return outputFiles[0]?.text ?? ''
}

/**
 * The frame starts the worker, and passes messages between it and the page. A frame alone may share the page's thread, which
 * an endless loop would stop; a worker alone would have the page's origin, its cookies and its storage.
 */
function frameOf(worker: string): string {
  const policy = "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval' blob:; worker-src blob:"
  const script = `
    const source = ${JSON.stringify(worker)}
    const worker = new Worker(URL.createObjectURL(new Blob([source], { type: 'text/javascript' })))
    worker.onmessage = ({ data }) => parent.postMessage(data, '*')
    worker.onerror = ({ message }) => parent.postMessage({ pane: 'server', kind: 'error', text: message }, '*')
    onmessage = ({ data, source }) => source === parent && worker.postMessage(data)`
  const safe = script.replaceAll('<', '\\x3c')
  return `<!doctype html><meta http-equiv="Content-Security-Policy" content="${policy}"><script>${safe}</script>`
}

import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { build, type Plugin } from 'esbuild'

const FOLDER = path.dirname(fileURLToPath(import.meta.url))
const ROOT = path.resolve(FOLDER, '../..')

/** A text of a source file, from the root of the repository, and what stands there instead. */
export interface Patch {
  readonly file: string
  readonly from: string
  readonly to: string
}

/**
 * Makes one file of {@link playSeed} with the server, the client and the libraries of brokers, for series and mutants. The
 * sources stay as they are.
 * @throws {Error} The text of a patch is not there once.
 */
export async function bundlePlays(outfile: string, patches: readonly Patch[] = []): Promise<void> {
  await build({
    // Clock and chance are replaced before anything else is loaded.
    stdin: {
      contents: `import './virtual-time.js'\nexport { playSeed } from './play.js'\nexport { SEEDED_BROKERS } from './brokers.js'`,
      resolveDir: FOLDER,
      loader: 'ts',
    },
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    logLevel: 'error',
    external: ['*.node', 'webmq-native', 'webmq-outbox-postgres', 'webmq-transport-uws'],
    alias: {
      ws: path.join(FOLDER, 'virtual-ws.ts'),
      ...Object.fromEntries(
        ['nats', 'rabbitmq', 'redis'].map((name) => [
          `webmq-broker-${name}`,
          path.join(ROOT, `packages/broker-${name}/src/index.ts`),
        ]),
      ),
      'webmq-server/brokers': path.join(ROOT, 'packages/server/src/adapters/brokers/index.ts'),
      'webmq-conformance': path.join(ROOT, 'packages/conformance/src/index.ts'),
      'webmq-server/ports': path.join(ROOT, 'packages/server/src/kernel/ports/index.ts'),
    },
    banner: {
      js: "import { createRequire as madeRequire } from 'node:module'\nconst require = madeRequire(import.meta.url)",
    },
    plugins: [onNetwork(), patched(patches)],
  })
}

/** The links of the checker are those of the network of the process. */
function onNetwork(): Plugin {
  return {
    name: 'on the network of the process',
    setup: ({ onResolve }) => {
      onResolve({ filter: /\/link\.js$/ }, ({ path: wanted, resolveDir }) =>
        path.resolve(resolveDir, wanted) === path.join(ROOT, 'packages/check/src/playing/link.js')
          ? { path: path.join(FOLDER, 'virtual-link.ts') }
          : undefined,
      )
    },
  }
}

function patched(patches: readonly Patch[]): Plugin {
  return {
    name: 'patches',
    setup: ({ onLoad, onEnd }) => {
      const isDone = new Set<Patch>()
      onLoad({ filter: /\.ts$/ }, async ({ path: file }) => {
        const wanted = patches.filter((patch) => path.join(ROOT, patch.file) === file)
        if (wanted.length === 0) return undefined
        let contents = await readFile(file, 'utf8')
        for (const patch of wanted) {
          if (contents.split(patch.from).length !== 2) throw new Error(`not once in ${patch.file}: ${patch.from}`)
          contents = contents.replace(patch.from, () => patch.to)
          isDone.add(patch)
        }
        return { contents, loader: 'ts' }
      })
      onEnd(() => {
        const left = patches.find((patch) => !isDone.has(patch))
        if (left !== undefined) throw new Error(`no play loads ${left.file}`)
      })
    },
  }
}

// The budgets of the client in an app: all exports of its core, and what each part adds to it. `webmq-client/testing` and
// the server's half of the protocol are no part of an app. test/docs/client-sizes.test.ts holds what a page loads.

import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

/** The plugin takes this off for what esbuild adds to an empty script, which it does not add to a module. */
const EMPTY_SCRIPT_BYTES = 32

const CORE_BYTES = 11_712

/** What each part adds. */
const PART_BYTES = {
  ai: 6_752,
  concurrency: 1_024,
  history: 1_056,
  iterate: 1_024,
  latest: 1_024,
  load: 1_024,
  outbox: 3_584,
  presence: 2_560,
  requests: 2_688,
  resume: 1_024,
  schema: 2_048,
  sse: 8_224,
  state: 1_792,
  stream: 7_552,
  tabs: 6_656,
}

/** What it adds for React Native. */
const NATIVE_BYTES = 2_048

/** What each hook adds beyond the core, its framework and the parts that it shows. */
const HOOK_BYTES = {
  useStatus: 768,
  useTopic: 1_024,
  usePublish: 1_024,
  useStateTopic: 1_280,
  usePresence: 1_536,
  useLatest: 1_792,
  useStream: 1_408,
  // With the list that joins history, live messages and optimistic ones.
  useMessages: 3_072,
}
const FRAMEWORKS = ['react', 'svelte', 'vue']
const SHOWN_PARTS = ['history', 'presence', 'state', 'stream']

const fileOf = (module) => fileURLToPath(new URL(`packages/client/dist/${module}.js`, import.meta.url))

const ESBUILD = { format: 'esm', platform: 'neutral', target: 'es2022' }

/** The modules of the core: an app has them anyway. */
async function coreFiles() {
  const options = { ...ESBUILD, bundle: true, metafile: true, write: false, outdir: '/' }
  const { metafile } = await build({ ...options, entryPoints: ['core/default-instance', 'core/of-client'].map(fileOf) })
  return Object.keys(metafile.inputs)
    .map((file) => fileURLToPath(new URL(file, import.meta.url)))
    .filter((file) => !file.endsWith('/of-client.js'))
}

/** An ignored module is imported by its number, so that a budget does not depend on the names of folders. */
const ignoring = (files) => ({
  name: 'ignored modules',
  setup: ({ onResolve }) =>
    onResolve({ filter: /^\./ }, ({ path, resolveDir }) => {
      const file = resolve(resolveDir, path)
      return files.includes(file) ? { path: `./${files.indexOf(file)}`, external: true } : undefined
    }),
})

const check = (module, maxBytes, ignore = []) => ({
  name: `webmq-client/dist/${module}.js`,
  path: `packages/client/dist/${module}.js`,
  limit: `${maxBytes - EMPTY_SCRIPT_BYTES} B`,
  gzip: true,
  ignore,
  modifyEsbuildConfig: (config) => ({ ...config, ...ESBUILD, plugins: [...(config.plugins ?? []), ignoring(ignore)] }),
})

const core = await coreFiles()

const beyondParts = [...core, ...FRAMEWORKS, ...SHOWN_PARTS.map((part) => fileOf(`parts/${part}/index`))]

const checkHook = (framework, hook, maxBytes) => ({
  ...check(`frameworks/${framework}/index`, maxBytes, beyondParts),
  name: `webmq-client/${framework}: ${hook}`,
  import: `{ ${hook} }`,
})

export default [
  check('index', CORE_BYTES),
  ...Object.entries(PART_BYTES).map(([part, maxBytes]) => check(`parts/${part}/index`, maxBytes, core)),
  check('frameworks/native/index', NATIVE_BYTES, core),
  ...FRAMEWORKS.flatMap((framework) =>
    Object.entries(HOOK_BYTES).map(([hook, maxBytes]) => checkHook(framework, hook, maxBytes)),
  ),
]

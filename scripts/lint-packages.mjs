// Packs every package as a release does, and checks the tarballs: their files, publint, and their types in every kind
// of project that resolves them.
import { mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import path from 'node:path'
import { checkPackage, createPackageFromTarballData } from '@arethetypeswrong/core'
import { publint } from 'publint'
import { formatMessage } from 'publint/utils'
import { PNPM } from './lib/build.mjs'
import { must, ROOT, runScript, StepError } from './lib/steps.mjs'

const FOLDER = path.join(ROOT, '.cache', 'packed')

/** Files that a tarball may have; everything else does not belong. */
const FILES = {
  'webmq-client': [/^dist\/[\w/-]+\.(js|d\.ts)$/, /^vectors\/([\w-]+\.json|README\.md)$/],
  'webmq-server': [
    /^dist\/[\w/.-]+\.(js|d\.ts)$/,
    /^bin\/webmq-server\.js$/,
    /^(admin|demo)\/[\w-]+\.(html|css|js)$/,
    /^errors\.md$/,
    // What `webmq-server init` writes.
    /^templates\//,
  ],
  'webmq-native': [/^[\w-]+\.(js|d\.ts)$/],
  // Not the load generator's sources: a bench that has them takes itself for a checkout, and builds them.
  'webmq-bench': [/^dist\/[\w/-]+\.js$/, /^(benchmark\.js|report\.html)$/, /^targets\/[\w-]+\.mjs$/],
  'webmq-check': [/^dist\/[\w/-]+\.js$/, /^bin\/webmq-check\.js$/, /^targets\/[\w-]+\.(mjs|py)$/],
  'webmq-broker-nats': [/^dist\/[\w/-]+\.(js|d\.ts)$/],
  'webmq-broker-rabbitmq': [/^dist\/[\w/-]+\.(js|d\.ts)$/],
  'webmq-broker-redis': [/^dist\/[\w/.-]+\.(js|d\.ts)$/],
  'webmq-outbox-postgres': [/^dist\/[\w/-]+\.(js|d\.ts)$/],
  'webmq-transport-uws': [/^dist\/[\w/-]+\.(js|d\.ts)$/],
  'webmq-services': [/^dist\/[\w/-]+\.(js|d\.ts)$/],
}
/** Published nowhere, but packed by whoever tries its suites: only what belongs into no tarball is looked for. */
const UNPUBLISHED = ['webmq-conformance']

const IN_EVERY_PACKAGE = ['package.json', 'README.md', 'LICENSE']

/** Never in a package, whatever matches above. */
const FORBIDDEN = /\.test\.|\.test-d\.|\/test\/|\.map$|tsbuildinfo|conformance/

const LEFT_BY_BUILDS = /tsbuildinfo|\.map$/

/**
 * What the types of packages without CommonJS always show, and why it is no problem here: since Node 20.19 `require()`
 * loads ESM, which TypeScript knows with `module: nodenext`; resolution as in Node 10 knows no `exports`, so it finds the
 * main entry alone.
 */
const EXPECTED_OF_ESM = ({ kind, resolutionKind, entrypoint }) =>
  kind === 'CJSResolvesToESM' || (kind === 'NoResolution' && resolutionKind === 'node10' && entrypoint !== '.')

await runScript(async () => {
  rmSync(FOLDER, { recursive: true, force: true })
  mkdirSync(FOLDER, { recursive: true })
  const filters = [...Object.keys(FILES), ...UNPUBLISHED].flatMap((name) => ['--filter', name])
  await must(
    'The packages could not be packed.',
    'npx',
    ['--yes', PNPM, '-r', ...filters, 'pack', '--pack-destination', FOLDER],
    {
      log: 'pack',
    },
  )

  for (const [name, patterns] of Object.entries(FILES)) report(name, await problemsOf(tarballOf(name), patterns))
  for (const name of UNPUBLISHED) {
    const { files } = contentsOf(tarballOf(name))
    const left = files.filter((file) => LEFT_BY_BUILDS.test(file))
    report(
      name,
      left.map((file) => `${file} does not belong into a package`),
    )
  }
})

function tarballOf(name) {
  const file = readdirSync(FOLDER).find((tarball) => tarball.startsWith(`${name}-`))
  if (file === undefined) throw new StepError(`${name} was not packed`)
  return readFileSync(path.join(FOLDER, file))
}

function report(name, problems) {
  for (const problem of problems) console.error(`${name}: ${problem}`)
  if (problems.length > 0) process.exitCode = 1
}

function contentsOf(tarball) {
  const packed = createPackageFromTarballData(tarball)
  const prefix = `/node_modules/${packed.packageName}/`
  return { packed, prefix, files: packed.listFiles(prefix).map((file) => file.slice(prefix.length)) }
}

async function problemsOf(tarball, patterns) {
  const { packed, prefix, files } = contentsOf(tarball)
  const belongs = (file) =>
    IN_EVERY_PACKAGE.includes(file) || (!FORBIDDEN.test(file) && patterns.some((pattern) => pattern.test(file)))
  const manifest = JSON.parse(packed.readFile(`${prefix}package.json`))
  const { messages } = await publint({
    pack: { tarball: tarball.buffer.slice(tarball.byteOffset, tarball.byteOffset + tarball.byteLength) },
    strict: true,
  })
  const { types, problems = [] } = manifest.exports['.'] === undefined ? { types: true } : await checkPackage(packed)
  return [
    ...files.filter((file) => !belongs(file)).map((file) => `${file} does not belong into the package`),
    ...[...IN_EVERY_PACKAGE, ...missingOf(patterns, files)]
      .filter((file) => !files.includes(file))
      .map((file) => `${file} is missing`),
    ...messages.map((message) => formatMessage(message, manifest, { color: false })),
    ...(types === false ? ['has no types'] : []),
    ...problems.filter((problem) => !EXPECTED_OF_ESM(problem)).map((problem) => JSON.stringify(problem)),
  ]
}

/** Each pattern stands for something that users need. */
function missingOf(patterns, files) {
  return patterns.filter((pattern) => !files.some((file) => pattern.test(file))).map(String)
}

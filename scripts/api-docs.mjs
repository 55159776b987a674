// The API reference of webmq-client, from the comments of what it exports, in .cache/api. Fails on an exported name
// without a comment, and on a link to nothing.
// Usage: node scripts/api-docs.mjs [--check]: only checks.
import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import process from 'node:process'
import { Application, ReflectionKind } from 'typedoc'
import { print, ROOT, runScript, StepError } from './lib/steps.mjs'

const CLIENT = path.join(ROOT, 'packages/client')
const OUT = path.join(ROOT, '.cache/api')

await runScript(async () => {
  const { exports } = JSON.parse(readFileSync(path.join(CLIENT, 'package.json'), 'utf8'))
  const files = Object.values(exports).flatMap(({ default: file }) => file ?? [])
  const app = await Application.bootstrap({
    name: 'webmq-client',
    entryPoints: files.map((file) => path.join(CLIENT, sourceOf(file))),
    tsconfig: path.join(CLIENT, 'tsconfig.docs.json'),
    readme: path.join(CLIENT, 'README.md'),
    excludeInternal: true,
    excludePrivate: true,
    excludeProtected: true,
    excludeExternals: true,
    disableSources: true,
    logLevel: 'Warn',
    validation: { invalidLink: true, rewrittenLink: true, notExported: false, notDocumented: false },
  })
  const project = await app.convert()
  if (project === undefined) throw new StepError('the sources of webmq-client do not compile')
  app.validate(project)
  const undocumented = (project.children ?? []).flatMap((module) =>
    (module.children ?? []).filter((item) => !isDocumented(item)).map(({ name }) => `${module.name}: ${name}`),
  )
  if (undocumented.length > 0) throw new StepError(`exported without a comment:\n  ${undocumented.join('\n  ')}`)
  if (app.logger.hasErrors() || app.logger.hasWarnings())
    throw new StepError('the comments of webmq-client have defects')
  if (process.argv.includes('--check')) return
  await app.generateDocs(project, OUT)
  print(`the API reference is in ${path.relative(process.cwd(), OUT)}/index.html`)
})

/** `src/react/index.tsx` of `./dist/react/index.js`. */
function sourceOf(file) {
  const source = file.replace('./dist/', 'src/').replace(/\.js$/, '.ts')
  return existsSync(path.join(CLIENT, source)) ? source : `${source}x`
}

function isDocumented(item) {
  if (item.kindOf(ReflectionKind.Reference) || item.hasComment()) return true
  return item.signatures?.some((signature) => signature.hasComment()) ?? false
}

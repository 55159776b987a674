import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs'
import path from 'node:path'
import dockerignore from '@balena/dockerignore'
import { DockerfileParser } from 'dockerfile-ast'
// Plays the stages of a Dockerfile without a container engine. It isolates nothing: commands run with this machine's programs.
import { must, StepError } from '../../scripts/lib/steps.mjs'

/**
 * The final stage, as folders and settings.
 * @typedef {{ root: string, folder: string, env: Record<string, string>, user: string, command: string[], health: string[] }} Image
 */

/**
 * Runs the instructions of every stage. Each stage is a folder that stands for `/`; absolute paths of COPY, WORKDIR and
 * ENV are in it. Base images are not fetched: what is copied from one must be a program on PATH.
 *
 * @param {{ file: string, context: string, into: string, log: string }} options `context`: a folder without what
 *   `.dockerignore` excludes. `into`: a folder for the stages.
 * @returns {Promise<Image>}
 * @throws {StepError} with the instruction that failed, or that is not known here.
 */
export async function playStages({ file, context, into, log }) {
  const stages = new Map()
  let stage
  let count = 0
  for (const instruction of DockerfileParser.parse(readFileSync(file, 'utf8')).getInstructions()) {
    const keyword = instruction.getKeyword()
    const text = instruction.getArgumentsContent()?.replaceAll(/\\\n(?:\s*#.*\n)*/g, '') ?? ''
    if (keyword === 'FROM') {
      const base = stages.get(instruction.getImage())
      stage = { root: path.join(into, String(count++)), folder: '/', env: {}, user: 'root', command: [], health: [] }
      if (base !== undefined) Object.assign(stage, { folder: base.folder, env: { ...base.env }, user: base.user })
      mkdirSync(stage.root, { recursive: true })
      if (base !== undefined) cpSync(base.root, stage.root, { recursive: true })
      stages.set(instruction.getBuildStage() ?? stage.root, stage)
      continue
    }
    const play = INSTRUCTIONS[keyword]
    if (play === undefined) throw new StepError(`${keyword} is not known to test/deploy/dockerfile.mjs`)
    await play({ stage, stages, context, log, instruction, text })
  }
  return stage
}

const INSTRUCTIONS = {
  WORKDIR({ stage, text }) {
    stage.folder = path.posix.resolve(stage.folder, text)
    mkdirSync(path.join(stage.root, stage.folder), { recursive: true })
  },

  ENV({ stage, instruction }) {
    for (const property of instruction.getProperties()) stage.env[property.getName()] = property.getValue()
  },

  USER({ stage, text }) {
    stage.user = text
  },

  EXPOSE() {
    // Documents the port; it opens nothing.
  },

  ENTRYPOINT({ stage, text }) {
    stage.command = JSON.parse(text)
  },

  HEALTHCHECK({ stage, text }) {
    stage.health = JSON.parse(text.slice(text.indexOf('CMD') + 'CMD'.length))
  },

  COPY({ stage, stages, context, instruction }) {
    const paths = instruction.getArguments().map((argument) => argument.getValue())
    const target = paths.pop()
    const from = instruction.getFromFlag()?.getValue()
    for (const source of paths) copy(stage, from === undefined ? context : stages.get(from).root, source, target)
  },

  async RUN({ stage, log, text }) {
    const command = text.replaceAll(/--mount=\S+\s+/g, '')
    const env = { ...process.env, CI: 'true', ...inRoot(stage) }
    const cwd = path.join(stage.root, stage.folder)
    await must(`The Dockerfile's command failed: ${command}`, 'sh', ['-ec', command], { cwd, env, log })
  },
}

function copy(stage, root, source, target) {
  const found = filesOf(path.join(root, source))
  if (found.length === 0) {
    if (isOnPath(path.basename(source))) return
    throw new StepError(`COPY finds no ${source}`)
  }
  const to = path.join(stage.root, path.posix.resolve(stage.folder, target))
  for (const file of found) {
    const isFile = statSync(file).isFile()
    // The contents of a folder are copied, not the folder.
    cpSync(file, isFile && /\/$/.test(target) ? path.join(to, path.basename(file)) : to, { recursive: true })
  }
}

/** Only the last part of a source may have a `*`. */
function filesOf(source) {
  const [folder, name] = [path.dirname(source), path.basename(source)]
  if (!name.includes('*')) return existsSync(source) ? [source] : []
  const [start, end] = name.split('*')
  const matches = readdirSync(folder).filter((entry) => entry.startsWith(start) && entry.endsWith(end))
  return matches.map((entry) => path.join(folder, entry))
}

function isOnPath(program) {
  return process.env.PATH.split(path.delimiter).some((folder) => existsSync(path.join(folder, program)))
}

/**
 * The variables of a stage; values that are absolute paths point into its folder.
 * @param {{ root: string, env: Record<string, string> }} stage
 */
export function inRoot({ root, env }) {
  return Object.fromEntries(
    Object.entries(env).map(([name, value]) => [name, value.startsWith('/') ? path.join(root, value) : value]),
  )
}

/**
 * The files of a folder that a build gets to see.
 * @param {readonly string[]} files relative to the folder of `.dockerignore`
 * @param {string} ignoreFile
 */
export function contextOf(files, ignoreFile) {
  return dockerignore()
    .add(readFileSync(ignoreFile, 'utf8'))
    .filter([...files])
}

// Applications around the blocks of docs/with: their login, and what a new project of the framework has.
import { TOOL_VERSIONS } from '../programs.mjs'

/** The frameworks' sealed cookies want 32 bytes. */
export const SESSION_SECRET = 'the secret of the sessions, 32 bytes or more'

/**
 * @typedef {object} Framework
 * @property {string} name
 * @property {string} page of docs
 * @property {string[]} blocks first words of the names of its blocks
 * @property {string} [folder] where their files are
 * @property {Record<string, string>} [modules] another path for a file of theirs
 * @property {boolean} [isPlain] it has no page of its own: it serves `page.html` at /rooms/42
 * @property {boolean} [takesForms] instead of JSON
 * @property {readonly string[]} [packages] of npm, beside WebMQ's
 * @property {(project: import('../project.mjs').Project) => Promise<unknown>} [install] others
 * @property {{ command: string[], packages: string[] }} [needs] `command`: it succeeds when Debian's `packages` are here
 * @property {Record<string, string>} [env]
 * @property {Record<string, string | object>} files the application around the blocks
 * @property {readonly string[][]} build commands
 * @property {readonly string[]} start
 * @property {RegExp} ready what it prints
 */

const TYPESCRIPT = [`typescript@${TOOL_VERSIONS.typescript}`, '@types/node@26.6.6']
const page = 'with/javascript.md'
const tsconfig = (options) => ({
  compilerOptions: {
    module: 'nodenext',
    target: 'es2023',
    strict: true,
    skipLibCheck: true,
    types: ['node'],
    ...options,
  },
})

const OF_EXPRESS_SESSION = `
declare module 'express-session' {
  interface SessionData { userId: string }
}`

/** @type {readonly Framework[]} */
export const FRAMEWORKS = [
  {
    name: 'Express 5.3.0',
    page,
    blocks: ['webmq', 'worker', 'express'],
    isPlain: true,
    packages: [
      'express@5.3.0',
      'express-session@1.19.0',
      '@types/express@5.0.6',
      '@types/express-session@1.19.0',
      '@types/ws@8.18.2',
      ...TYPESCRIPT,
    ],
    files: {
      'tsconfig.json': tsconfig({ outDir: 'dist' }),
      'main.ts': `import path from 'node:path'
import express from 'express'
import session from 'express-session'
import { realtime } from './realtime.js'
${OF_EXPRESS_SESSION}
const app = express()
app.use(session({ secret: process.env.SESSION_SECRET!, resave: false, saveUninitialized: false }))
app.use(express.json())
app.get('/login', (request, response) => {
  request.session.userId = String(request.query.user)
  response.send('in')
})
app.get('/rooms/:room', (_, response) => response.sendFile(path.resolve('page.html')))
app.use(realtime)
app.listen(Number(process.env.PORT), () => console.log('ready'))`,
    },
    build: [['npx', 'tsc']],
    start: ['node', 'dist/main.js'],
    ready: /ready/,
  },
  {
    name: 'Fastify 5.12.8',
    page,
    blocks: ['webmq', 'fastify'],
    isPlain: true,
    packages: ['fastify@5.12.8', '@fastify/cookie@11.1.5', '@fastify/session@11.1.3', ...TYPESCRIPT],
    files: {
      'tsconfig.json': tsconfig({ outDir: 'dist' }),
      'main.ts': `import { readFileSync } from 'node:fs'
import cookie from '@fastify/cookie'
import session from '@fastify/session'
import Fastify from 'fastify'
import { realtime } from './realtime.js'

declare module 'fastify' {
  interface Session { userId: string }
}
const app = Fastify()
await app.register(cookie)
await app.register(session, { secret: process.env.SESSION_SECRET!, cookie: { secure: false } })
app.get<{ Querystring: { user: string } }>('/login', async (request) => {
  request.session.userId = request.query.user
  return 'in'
})
app.get('/rooms/:room', (_, reply) => reply.type('text/html').send(readFileSync('page.html')))
await app.register(realtime)
await app.listen({ port: Number(process.env.PORT) })
console.log('ready')`,
    },
    build: [['npx', 'tsc']],
    start: ['node', 'dist/main.js'],
    ready: /ready/,
  },
  {
    name: 'NestJS 12.5.1',
    page,
    blocks: ['webmq', 'nest'],
    modules: { 'webmq.ts': 'src/webmq.ts' },
    isPlain: true,
    packages: [
      '@nestjs/core@12.5.1',
      '@nestjs/common@12.5.1',
      '@nestjs/platform-express@12.5.1',
      '@nestjs/cli@12.0.8',
      'reflect-metadata@0.2.2',
      'rxjs@7.8.2',
      'express-session@1.19.0',
      '@types/express@5.0.6',
      '@types/express-session@1.19.0',
      ...TYPESCRIPT,
    ],
    files: {
      'nest-cli.json': { sourceRoot: 'src', compilerOptions: { deleteOutDir: true } },
      'tsconfig.json': tsconfig({
        outDir: 'dist',
        rootDir: 'src',
        emitDecoratorMetadata: true,
        experimentalDecorators: true,
        strictPropertyInitialization: false,
      }),
      'src/logged-in.guard.ts': `import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common'
import type { Request } from 'express'
${OF_EXPRESS_SESSION}
@Injectable()
export class LoggedIn implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    return context.switchToHttp().getRequest<Request>().session.userId !== undefined
  }
}`,
      'src/main.ts': `import path from 'node:path'
import { Controller, Get, Module, Query, Res, Session } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import type { Response } from 'express'
import session from 'express-session'
import { RoomsController } from './rooms.controller.js'

@Controller()
class PagesController {
  @Get('login')
  login(@Session() session: { userId: string }, @Query('user') user: string) {
    session.userId = user
    return 'in'
  }

  @Get('rooms/:room')
  page(@Res() response: Response) {
    response.sendFile(path.resolve('page.html'))
  }
}

@Module({ controllers: [RoomsController, PagesController] })
class AppModule {}

const app = await NestFactory.create(AppModule)
app.use(session({ secret: process.env.SESSION_SECRET!, resave: false, saveUninitialized: false }))
await app.listen(process.env.PORT!)`,
    },
    build: [['npx', 'nest', 'build']],
    start: ['node', 'dist/main.js'],
    ready: /successfully started/,
  },
  {
    name: `Next ${TOOL_VERSIONS.next}`,
    page,
    blocks: ['webmq', 'next'],
    modules: { 'webmq.ts': 'lib/webmq.ts' },
    env: { NEXT_TELEMETRY_DISABLED: '1' },
    packages: [`next@${TOOL_VERSIONS.next}`, 'react@19.3.1', 'react-dom@19.3.1', '@types/react@19.3.3', ...TYPESCRIPT],
    files: {
      'tsconfig.json': tsconfig({
        module: 'esnext',
        moduleResolution: 'bundler',
        lib: ['dom', 'dom.iterable', 'esnext'],
        jsx: 'react-jsx',
        noEmit: true,
        isolatedModules: true,
        resolveJsonModule: true,
        paths: { '@/*': ['./*'] },
      }),
      'app/layout.tsx': `import type { ReactNode } from 'react'
export default ({ children }: { children: ReactNode }) => <html><body>{children}</body></html>`,
      'app/login/route.ts': `import { SignJWT } from 'jose'
import { cookies } from 'next/headers'

export async function GET(request: Request) {
  const user = new URL(request.url).searchParams.get('user')!
  const jwt = new SignJWT({}).setProtectedHeader({ alg: 'HS256' }).setSubject(user).setExpirationTime('1h')
  ;(await cookies()).set('session', await jwt.sign(new TextEncoder().encode(process.env.SESSION_SECRET)))
  return new Response('in')
}`,
    },
    build: [['npx', 'next', 'build']],
    start: ['npx', 'next', 'start'],
    ready: /Ready in/,
  },
  {
    name: `Nuxt ${TOOL_VERSIONS.nuxt}`,
    page,
    blocks: ['webmq', 'nuxt'],
    modules: { 'webmq.ts': 'server/utils/webmq.ts' },
    packages: [`nuxt@${TOOL_VERSIONS.nuxt}`, 'vue@3.5.45', 'vue-router@5.5.1', ...TYPESCRIPT],
    files: {
      'nuxt.config.ts': `export default defineNuxtConfig({ compatibilityDate: '2026-11-01', telemetry: false })`,
      'app/app.vue': '<template><NuxtPage /></template>',
      'server/routes/login.get.ts': `export default defineEventHandler(async (event) => {
  const session = await useSession(event, { password: process.env.SESSION_SECRET!, cookie: { secure: false } })
  await session.update({ userId: String(getQuery(event).user) })
  return 'in'
})`,
    },
    build: [['npx', 'nuxt', 'build']],
    start: ['node', '.output/server/index.mjs'],
    ready: /Listening/,
  },
  {
    name: 'SvelteKit 3.2.0',
    page,
    blocks: ['webmq', 'sveltekit'],
    modules: { 'webmq.ts': 'src/lib/server/webmq.ts' },
    packages: [
      '@sveltejs/kit@3.2.0',
      '@sveltejs/adapter-node@6.0.1',
      '@sveltejs/vite-plugin-svelte@7.3.1',
      'svelte@5.57.3',
      `vite@${TOOL_VERSIONS.vite}`,
      'svelte-check@4.7.8',
      ...TYPESCRIPT,
    ],
    files: {
      'vite.config.ts': `import adapter from '@sveltejs/adapter-node'
import { sveltekit } from '@sveltejs/kit/vite'
import { defineConfig } from 'vite'

export default defineConfig({ plugins: [sveltekit({ adapter: adapter() })] })`,
      'tsconfig.json': {
        extends: '$app/tsconfig',
        compilerOptions: { strict: true, skipLibCheck: true },
      },
      'src/app.html': '<!doctype html><html><head>%sveltekit.head%</head><body>%sveltekit.body%</body></html>',
      'src/app.d.ts': `declare global {
  namespace App {
    interface Locals { user?: { id: string } }
  }
}
export {}`,
      'src/lib/server/sessions.ts': 'export const sessions = new Map<string, { id: string }>()',
      'src/hooks.server.ts': `import type { Handle } from '@sveltejs/kit/hooks'
import { sessions } from '#lib/server/sessions.ts'

export const handle: Handle = ({ event, resolve }) => {
  event.locals.user = sessions.get(event.cookies.get('session') ?? '')
  return resolve(event)
}`,
      'src/routes/login/+server.ts': `import { sessions } from '#lib/server/sessions.ts'
import type { RequestHandler } from './$types'

export const GET: RequestHandler = ({ url, cookies }) => {
  const session = crypto.randomUUID()
  sessions.set(session, { id: url.searchParams.get('user') ?? '' })
  cookies.set('session', session, { path: '/', secure: false })
  return new Response('in')
}`,
    },
    build: [
      ['npm', 'pkg', 'set', 'imports[#lib/*]=./src/lib/*'],
      ['npx', 'svelte-kit', 'sync'],
      ['npx', 'svelte-check'],
      ['npx', 'vite', 'build'],
    ],
    start: ['node', 'build'],
    ready: /Listening/,
  },
]

declare module 'virtual:playground-frame' {
  /** The HTML of the sandbox. */
  const page: string
  export default page
}

declare module '*.vue' {
  import type { DefineComponent } from 'vue'

  const component: DefineComponent
  export default component
}

import preact from "@preact/preset-vite";
import { defineConfig } from "vite";

// Assets go into the Python package, from which the broker serves them.
export default defineConfig({
  plugins: [preact()],
  // Beside the page, wherever that is: `management.path_prefix` moves it.
  base: "./",
  build: {
    outDir: "../src/warren/management/static",
    emptyOutDir: true,
    // Everything has a file of its own: the content security policy allows nothing inline.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  server: { proxy: { "/api": "http://127.0.0.1:15672" } },
});

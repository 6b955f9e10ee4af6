"""Make the film of the README, docs/gallery/film.webp, without a screen or a GPU. It shows three scenes in sequence.

    python ci/docs/make_film.py [--out FILE.webp] [--fps 20] [--size 480x270] [--quality 60]

``gpusim render`` (``pip install "gpusim[video]"``) renders each scene into a temporary MP4 file. The script takes some
minutes on two cores. It fails if the film would be larger than 4 MB.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import imageio_ffmpeg
import numpy as np
from PIL import Image

ROOT = Path(__file__).parents[2]
MAX_BYTES = 4_000_000
PARTS = (
    "excavator --time 8.5 --duration 2 --camera 4.6,-3.6,2.2,1.1,0,0.75",
    "rtk_m --time 2.5 --duration 2 --camera 5.6,-5.2,2.6,1.9,0,0.5",
    "biped_walk --time 5 --duration 2 --camera 3.2,-2.0,1.2,0.9,0,0.7",
)
"""Scene and options of each part."""


def render(options: str, size: str, fps: float, folder: Path) -> list[Image.Image]:
    """Render one scene and return its frames."""
    film = folder / f"{options.split()[0]}.mp4"
    words = [*options.split(), "--size", size, "--fps", str(fps), "--out", str(film)]
    print("gpusim render", *words[:-2], flush=True)
    subprocess.run([sys.executable, "-m", "gpusim", "render", *words], check=True, cwd=folder)
    reader = imageio_ffmpeg.read_frames(str(film))
    width, height = next(reader)["size"]
    return [Image.fromarray(np.frombuffer(frame, np.uint8).reshape(height, width, 3)) for frame in reader]


def main() -> int:
    """Render all scenes and join their frames to one film."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "gallery" / "film.webp")
    parser.add_argument("--fps", type=float, default=20.0)
    parser.add_argument("--size", default="480x270")
    parser.add_argument("--quality", type=int, default=75)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        frames = [frame for part in PARTS for frame in render(part, options.size, options.fps, Path(name))]
        made = Path(name) / "film.webp"
        duration = round(1000.0 / options.fps)
        frames[0].save(
            made, save_all=True, append_images=frames[1:], duration=duration, loop=0, quality=options.quality, method=4
        )
        size = made.stat().st_size
        print(f"{len(frames)} frames, {size / 1e6:.2f} MB")
        if size > MAX_BYTES:
            print(f"The film is larger than {MAX_BYTES / 1e6:.0f} MB. Lower --quality, --fps or --size.")
            return 1
        options.out.write_bytes(made.read_bytes())
    return 0


if __name__ == "__main__":
    sys.exit(main())

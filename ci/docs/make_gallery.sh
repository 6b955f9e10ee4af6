#!/usr/bin/env bash
# Draw one picture of every scene into docs/gallery, 640 x 360, and print the command of each. This needs no screen
# and no GPU. With names, draw only those scenes: ci/docs/make_gallery.sh pile flyball
set -euo pipefail
cd "$(dirname "$0")/../.."

PYTHON="${PYTHON:-python}"
OUT="${OUT:-docs/gallery}"
mkdir -p "$OUT"

# Each line has a scene and the options that show it best: a time at which it moves, and a close camera.
while read -r scene options; do
    [ -z "$scene" ] && continue
    if [ $# -gt 0 ] && [[ " $* " != *" $scene "* ]]; then
        continue
    fi
    # shellcheck disable=SC2086  (options are words)
    echo "gpusim render $scene $options --out $OUT/$scene.png"
    # shellcheck disable=SC2086
    "$PYTHON" -m gpusim.cli.main render "$scene" $options --out "$OUT/$scene.png" --quality high >/dev/null
done <<'SCENES'
biped_valve --time 4.9 --camera 1.9,-1.5,1.35,0.1,0,0.75
biped_walk --time 19.75 --camera 5.2,-2.0,1.25,3.35,0,0.66
boom_crane --time 2 --camera fit
bricard --time 0.3 --camera fit
card_house --camera 0.25,-0.5,0.22,0,0,0.13
chain --time 0.8 --camera fit
chrono_crane --time 4 --camera fit
dc_motor_rig --time 0.5 --camera 1.1,-2.6,0.7,0,0,-0.05
double_pendulum --time 0.3 --camera fit
excavator --time 9.5 --camera 4.6,-3.6,2.2,1.1,0,0.75
flyball --time 0.5 --camera fit
four_bar --time 0.4 --camera fit
hydraulic_lift --time 2.5 --camera fit
krt100m --time 2.9
mecanum_vehicle --time 2.2 --camera 2.0,-0.75,0.5,1.25,0.1,0.06
omni_vehicle --time 2.2 --camera 2.0,-0.75,0.5,1.25,0.1,0.06
pile --time 1.5
pyramid --camera fit
quarter_car --time 0.2 --camera fit
rattleback --time 0.5 --camera 0.16,-0.36,0.16,0,0,0.01
robot_arm --time 4.9 --camera 1.0,-0.95,0.95,0.27,0,0.3
rtk_m --time 13.5 --camera 6.6,-3.4,2.4,2.7,0.7,0.7
slider_crank --time 0.2 --camera fit
slope --time 0.4 --camera 1.2,-2,0.9,0.25,0,-0.1
spinning_top --time 0.3 --camera 0.25,-0.42,0.2,0,0,0.07
suspension_rig --time 0.5
tippe_top --time 0.6 --camera fit
SCENES
